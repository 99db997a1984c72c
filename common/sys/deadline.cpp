#include "common/sys/deadline.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace symm {

std::chrono::nanoseconds Deadline::standard_limit() {
    constexpr double kDefaultSeconds = 30;
    constexpr double kLeast = 1e-3;
    constexpr double kMost = 24 * 3600.0;
    double seconds = kDefaultSeconds;
    if (const char* text = std::getenv("SYMM_TIMEOUT")) {
        char* end = nullptr;
        const double value = std::strtod(text, &end);
        if (end != text && *end == '\0' && std::isfinite(value) && value > 0) {
            seconds = value;
        }
    }
    seconds = std::min(std::max(seconds, kLeast), kMost);
    return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

Deadline Deadline::standard() {
    return after(standard_limit());
}

}  // namespace symm
