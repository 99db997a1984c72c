#pragma once
/// \file
/// The tuner's table: up to which size which algorithm is the fastest. One table per kind of
/// machine, as text, written by `06_allreduce_tune FILE`:
///
///     # ranks     types  oneshot  sentinel  push  twoshot  chunks
///           2  floating      16K        8M     -      16M    256M
///           2   integer     512K         -     -      16M    256M
///
/// A number is the largest call, in bytes, for which its algorithm is taken: the first from the
/// left whose number is large enough. `-` is never, `all` any size. Larger calls go to the copy
/// engine. A row is for up to its number of ranks, and more than the previous row's.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/sys/named.hpp"

namespace symm {

/// The algorithms of a call, in the order in which sizes grow. kAuto leaves it to the tuner.
enum class Algorithm { kAuto, kOneShot, kSentinel, kPush, kTwoShot, kChunks, kCopy };

template <>
struct Names<Algorithm> {
    static constexpr std::string_view kEnum = "Algorithm";
    static constexpr std::array<std::string_view, 7> kNames{
        "auto", "oneshot", "sentinel", "push", "twoshot", "chunks", "copy"};
};
/// Whether it is for floating types only: it needs the sentinel, which integers do not have.
bool is_floating_only(Algorithm algorithm);
/// Whether it also makes a ReduceScatter and an AllGather: kAuto, kOneShot, kTwoShot and kCopy.
bool makes_halves(Algorithm algorithm);

/// The algorithms that have a column.
inline constexpr std::array kTuned{Algorithm::kOneShot, Algorithm::kSentinel, Algorithm::kPush,
                                   Algorithm::kTwoShot, Algorithm::kChunks};

struct TuningRow {
    int ranks;                                     ///< At most.
    bool floating;                                 ///< The type; false: integers.
    std::array<std::size_t, kTuned.size()> up_to;  ///< Bytes; 0: never.

    /// The algorithm for a call of `bytes` bytes.
    Algorithm algorithm(std::size_t bytes) const;
    /// The largest call for an algorithm of kTuned.
    std::size_t limit(Algorithm algorithm) const;
    /// The largest call for which an algorithm left of this one in the table is taken.
    std::size_t above(Algorithm algorithm) const;
};

class TuningTable {
public:
    /// The file that SYMM_TUNING names; otherwise the library's table for this driver: the one of
    /// H200s, or of emulated GPUs. Throws UsageError.
    static TuningTable from_environment();
    /// Reads the file; `origin` is named in errors. Throws UsageError.
    static TuningTable read(const std::string& path, const std::string& origin);
    /// The same for a text.
    static TuningTable parse(std::string_view text, std::string_view origin);

    std::string text() const;
    /// The row for a call.
    const TuningRow& row(int ranks, bool floating) const;
    /// Adds the row, or replaces the one for these ranks and types.
    void set(const TuningRow& row);

private:
    std::vector<TuningRow> rows_;  ///< By ranks; floating before integers.
};

}  // namespace symm
