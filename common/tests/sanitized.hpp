#pragma once
/// \file
/// Whether a sanitizer makes everything about twenty times slower.

#include <string_view>

namespace symm::testing {

inline constexpr bool kSanitized = !std::string_view(SYMM_SANITIZE).empty();

}  // namespace symm::testing
