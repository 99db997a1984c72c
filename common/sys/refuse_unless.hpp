#pragma once
/// \file
/// How a function refuses bad input.

#include <fmt/core.h>

#include <stdexcept>
#include <utility>

namespace symm {

/// Throws std::invalid_argument with the text unless the call `is_possible`.
template <class... Arguments>
void refuse_unless(bool is_possible, fmt::format_string<Arguments...> text,
                   Arguments&&... arguments) {
    if (!is_possible) {
        throw std::invalid_argument(fmt::format(text, std::forward<Arguments>(arguments)...));
    }
}

}  // namespace symm
