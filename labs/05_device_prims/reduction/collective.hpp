#pragma once
/// \file
/// The collectives: what becomes of all ranks' inputs.

#include <cstdint>
#include <string_view>

namespace symm {

enum class Collective : std::uint32_t {
    kAllReduce,
    kReduceScatter,
    kAllGather,
    kBroadcast,
    kReduce
};

/// How often the bytes of the larger buffer, but for a rank's own, cross its link.
constexpr int trips_of(Collective collective) {
    return collective == Collective::kAllReduce ? 2 : 1;
}

/// `allreduce`, `reducescatter`, `allgather`, `broadcast` or `reduce`.
std::string_view name_of(Collective collective);
/// `AllReduce`, and so on, as written in pages and output.
std::string_view title_of(Collective collective);
/// The collective by its name. Throws UsageError for an unknown one, listing the known ones.
Collective collective_named(std::string_view name);
/// Throws std::invalid_argument for a number that is no collective.
void require_known(Collective collective);

}  // namespace symm
