#pragma once
/// \file
/// The tuner's table: up to which size which algorithm is the fastest. One table per kind of
/// machine, as text (TuningTable). `06_allreduce_tune FILE` writes one:
///
///     ranks          calls  oneshot  sentinel  push  twoshot  chunks
///         2       floating      16K        8M     -      16M    256M
///         2        integer     512K         -     -      16M    256M
///         2  reducescatter       1M         -     -     256M       -

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/sys/named.hpp"
#include "labs/06_allreduce/algorithms/algorithm.hpp"
#include "labs/06_allreduce/algorithms/call.hpp"

namespace symm {

/// Calls that share a row: AllReduces of floating types or of integers, and the other collectives.
enum class CallKind { kFloating, kInteger, kReduceScatter, kAllGather, kBroadcast, kReduce };
inline constexpr std::array kCallKinds{CallKind::kFloating,      CallKind::kInteger,
                                       CallKind::kReduceScatter, CallKind::kAllGather,
                                       CallKind::kBroadcast,     CallKind::kReduce};
constexpr auto names_of(CallKind) {
    return names("CallKind", "floating", "integer", "reducescatter", "allgather", "broadcast",
                 "reduce");
}
CallKind kind_of(const Call& call);
/// Whether the row's algorithm makes such calls.
bool kind_makes(CallKind kind, const AlgorithmRow& row);

struct TuningRow {
    static constexpr std::size_t kColumns =
        kTunedAlgorithms - 1;  ///< The last algorithm needs none.

    int ranks;  ///< At most.
    CallKind kind;
    std::array<std::size_t, kColumns> up_to;  ///< Bytes; 0: never.

    /// An algorithm's place in up_to.
    static constexpr std::size_t column(Algorithm algorithm) {
        return static_cast<std::size_t>(algorithm) - 1;
    }
    static constexpr Algorithm algorithm_of(std::size_t column) {
        return static_cast<Algorithm>(column + 1);
    }
    /// The algorithm for a call of `bytes` bytes.
    Algorithm algorithm(std::size_t bytes) const;
    /// The largest call for an algorithm.
    std::size_t limit(Algorithm algorithm) const;
    /// The largest call for which an algorithm left of this one in the table is taken.
    std::size_t above(Algorithm algorithm) const;
};

/// In its text, the first row names the columns. A number is the largest call, in bytes of the
/// larger buffer, for which its algorithm is taken: the first in the order of the algorithms whose
/// number is large enough. `-`, or no column, is for no size, `all` for any. Larger calls go to the
/// copy engine. A row is for up to its number of ranks, and more than the previous row's.
///
/// If the ranks' buffers, devices or blocks do not allow the algorithm, the tuner takes another
/// one, whatever its column says: one shot needs neither windows nor a column.
class TuningTable {
public:
    /// The file that SYMM_TUNING names; otherwise the library's table for this driver: the one of
    /// H200s, or of emulated GPUs. Throws UsageError.
    static TuningTable from_environment();
    /// Reads the file; `origin` is named in errors. Throws UsageError.
    static TuningTable read(const std::string& path, const std::string& origin);
    /// The same for a text. Rows of other collectives that it lacks are the library's.
    static TuningTable parse(std::string_view text, std::string_view origin);

    std::string text() const;
    /// The row for a call.
    const TuningRow& row(int ranks, CallKind kind) const;
    /// Adds the row, or replaces the one for these ranks and calls.
    void set(const TuningRow& row);

private:
    std::vector<TuningRow> rows_;  ///< By ranks, then by kind.
};

}  // namespace symm
