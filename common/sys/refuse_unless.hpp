#pragma once
/// \file
/// How a function refuses bad input.

#include <stdexcept>

#include "common/sys/format.hpp"

namespace symm {

/// Throws std::invalid_argument with the text unless the call `is_possible`.
template <class... Arguments>
void refuse_unless(bool is_possible, Format<std::type_identity_t<Arguments>...> format,
                   const Arguments&... arguments) {
    if (!is_possible) {
        throw std::invalid_argument(text_of(format, arguments...));
    }
}

}  // namespace symm
