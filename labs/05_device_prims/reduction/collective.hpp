#pragma once
/// \file
/// The collectives: what becomes of all ranks' inputs.

#include <array>
#include <cstdint>
#include <string_view>

#include "common/sys/named.hpp"

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

constexpr auto names_of(Collective) {
    return names("Collective", "allreduce", "reducescatter", "allgather", "broadcast", "reduce");
}

/// `AllReduce`, and so on, as written in pages and output.
inline std::string_view title_of(Collective collective) {
    constexpr std::array<std::string_view, 5> kTitles{"AllReduce", "ReduceScatter", "AllGather",
                                                      "Broadcast", "Reduce"};
    return name_at(kTitles, "Collective", static_cast<std::int64_t>(collective));
}

}  // namespace symm
