#pragma once
/// \file
/// Calls a template for the element type and number of ranks of a call.

#include <stdexcept>
#include <type_traits>
#include <utility>

#include "labs/06_allreduce/element.hpp"
#include "labs/06_allreduce/one_shot.hpp"

namespace symm {

/// Calls `use(Element{}, std::integral_constant<int, ranks>{})`. Throws std::invalid_argument for
/// ranks beyond kMaxAllReduceRanks.
template <class Use>
void dispatch(DataType type, int ranks, Use&& use) {
    const auto with_ranks = [&](auto element) {
        const bool done = [&]<int... kBefore>(std::integer_sequence<int, kBefore...>) {
            return ((ranks == kBefore + 1 &&
                     (use(element, std::integral_constant<int, kBefore + 1>{}), true)) ||
                    ...);
        }
        (std::make_integer_sequence<int, kMaxAllReduceRanks>{});
        if (!done) {
            throw std::invalid_argument("an AllReduce has 1 to 8 ranks");
        }
    };
    type == DataType::kFloat ? with_ranks(Float{}) : with_ranks(Bfloat16{});
}

}  // namespace symm
