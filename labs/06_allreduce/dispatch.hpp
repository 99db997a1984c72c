#pragma once
/// \file
/// Calls a template for the element type and number of ranks of a call.

#include <type_traits>
#include <utility>

#include "labs/06_allreduce/element.hpp"
#include "labs/06_allreduce/one_shot.hpp"

namespace symm {

/// Calls `use(Element{}, std::integral_constant<int, ranks>{})`, for 1 to kMaxAllReduceRanks ranks.
template <class Use>
void dispatch(DataType type, int ranks, Use&& use) {
    const auto with_ranks = [&](auto element) {
        [&]<int... kBefore>(std::integer_sequence<int, kBefore...>) {
            ((ranks == kBefore + 1 ? use(element, std::integral_constant<int, kBefore + 1>{})
                                   : void()),
             ...);
        }
        (std::make_integer_sequence<int, kMaxAllReduceRanks>{});
    };
    type == DataType::kFloat ? with_ranks(Float{}) : with_ranks(Bfloat16{});
}

}  // namespace symm
