#pragma once
/// \file
/// SYMM_CHECK=1: the ranks compare their calls before they make them.

#include <cstdint>
#include <exception>
#include <string_view>

#include "common/bootstrap/bootstrap.hpp"

namespace symm {

/// Collective. `number` is the call's on this rank, `call` its text, and `refusal` why this rank
/// refuses it, if it does. Throws on each rank if a rank refuses its call, or if the calls differ:
/// the refusal, on all other ranks std::invalid_argument.
void compare_calls(Bootstrap& bootstrap, std::uint64_t number, std::string_view call,
                   const std::exception_ptr& refusal);

}  // namespace symm
