#include "common/sys/deadline.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "common/sys/number.hpp"

namespace symm {

std::optional<std::chrono::nanoseconds> Deadline::limit_in(std::string_view text) {
    constexpr double kLeast = 1e-3;
    constexpr double kMost = 24 * 3600.0;
    const auto seconds = number_in(text, 0.0, std::numeric_limits<double>::max());
    if (!seconds || *seconds == 0) {
        return std::nullopt;
    }
    return std::chrono::nanoseconds(
        static_cast<std::int64_t>(std::clamp(*seconds, kLeast, kMost) * 1e9));
}

std::chrono::nanoseconds Deadline::standard_limit() {
    const char* text = std::getenv("SYMM_TIMEOUT");
    return limit_in(text == nullptr ? "" : text).value_or(std::chrono::seconds(30));
}

Deadline Deadline::standard() {
    return after(standard_limit());
}

}  // namespace symm
