#pragma once
/// \file
/// The collectives: what becomes of all ranks' inputs. A row says all of it:
///
/// | collective    | each part comes from | and goes to    |
/// |---------------|----------------------|----------------|
/// | AllReduce     | all ranks, added up  | all ranks      |
/// | ReduceScatter | all ranks, added up  | the rank whose part it is |
/// | AllGather     | the rank whose part it is | all ranks |
/// | Broadcast     | the root             | all ranks      |
/// | Reduce        | all ranks, added up  | the root       |

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "common/sys/named.hpp"

namespace symm {

enum class Collective : std::uint32_t {
    kAllReduce,
    kReduceScatter,
    kAllGather,
    kBroadcast,
    kReduce
};

/// Whose buffers hold a part: those of all ranks, of the one rank whose part it is, or the root's.
enum class Holders { kAll, kOwner, kRoot };

struct CollectiveRow {
    std::string_view name;   ///< As people type it.
    std::string_view title;  ///< As written in pages and output.
    Holders from;            ///< Whose inputs count.
    Holders to;              ///< Whose outputs are written.

    /// Whether `in` or `out` has a part of `count` elements for each rank.
    constexpr bool in_has_parts() const { return to == Holders::kOwner; }
    constexpr bool out_has_parts() const { return from == Holders::kOwner; }
    constexpr bool has_parts() const { return in_has_parts() || out_has_parts(); }
    constexpr bool has_root() const { return from == Holders::kRoot || to == Holders::kRoot; }
    /// Else elements are only moved.
    constexpr bool reduces() const { return from == Holders::kAll; }
    /// Whether the call uses this rank's buffers.
    constexpr bool reads(int rank, int root) const {
        return from != Holders::kRoot || rank == root;
    }
    constexpr bool writes(int rank, int root) const { return to != Holders::kRoot || rank == root; }
    /// How often the bytes of the larger buffer, but for a rank's own, cross its link.
    constexpr int trips() const { return from == Holders::kAll && to == Holders::kAll ? 2 : 1; }
};

/// In the order of Collective.
inline constexpr std::array kCollectiveRows{
    CollectiveRow{"allreduce", "AllReduce", Holders::kAll, Holders::kAll},
    CollectiveRow{"reducescatter", "ReduceScatter", Holders::kAll, Holders::kOwner},
    CollectiveRow{"allgather", "AllGather", Holders::kOwner, Holders::kAll},
    CollectiveRow{"broadcast", "Broadcast", Holders::kRoot, Holders::kAll},
    CollectiveRow{"reduce", "Reduce", Holders::kAll, Holders::kRoot}};

constexpr auto names_of(Collective) {
    return [&]<std::size_t... kPlace>(std::index_sequence<kPlace...>) {
        return names("Collective", kCollectiveRows[kPlace].name...);
    }
    (std::make_index_sequence<kCollectiveRows.size()>());
}

constexpr const CollectiveRow& row_of(Collective collective) {
    return kCollectiveRows[static_cast<std::size_t>(collective)];
}

}  // namespace symm
