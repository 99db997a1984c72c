#pragma once
/// \file
/// Inputs of scenes, of which no rank can compute another's from its own: an answer of the course
/// has to exchange them.

#include <cstdint>

namespace symm::explore {

/// Another number of five digits for each `number`, in no order; the first digit is `rank` + 1.
constexpr std::uint32_t unguessable(int rank, std::uint32_t number) {
    std::uint32_t bits = 0x9e3779b9U * (8 * number + static_cast<std::uint32_t>(rank) + 1);
    bits = (bits ^ bits >> 16) * 0x85ebca6bU;
    return 10'000 * (static_cast<std::uint32_t>(rank) + 1) + (bits ^ bits >> 13) % 10'000;
}

}  // namespace symm::explore
