#include "common/sys/log.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <exception>

#include "common/sys/environment.hpp"
#include "common/sys/print.hpp"

namespace symm::log {
namespace {

// By Level: the values of SYMM_DEBUG, and the word in a line.
constexpr std::array<std::string_view, 4> kValues{"debug", "info", "warn", "error"};
constexpr std::array<std::string_view, 4> kWords{"debug", "info", "warning", "error"};

std::atomic<bool> error_told = false;

}  // namespace

bool told_an_error() noexcept {
    return error_told;
}

bool enabled(Level level) noexcept {
    static const Level lowest = []() noexcept {
        try {
            const auto* const at = std::ranges::find(kValues, env::choice("SYMM_DEBUG"));
            return static_cast<Level>(at - kValues.begin());
        } catch (const std::exception&) {  // require_environment() reports the wrong value
            return Level::kWarn;
        }
    }();
    return level >= lowest;
}

void write(Level level, std::string_view text) noexcept {
    if (level == Level::kError) {
        error_told = true;
    }
    if (!enabled(level)) {
        return;
    }
    try {
        timespec now{};
        ::clock_gettime(CLOCK_REALTIME, &now);
        tm time{};
        ::localtime_r(&now.tv_sec, &time);
        write_text(STDERR_FILENO, fmt::format("{:02}:{:02}:{:02}.{:03} {}: {}\n", time.tm_hour,
                                              time.tm_min, time.tm_sec, now.tv_nsec / 1'000'000,
                                              kWords[static_cast<std::size_t>(level)], text));
    } catch (const std::exception&) {  // there is no other way to report it
    }
}

}  // namespace symm::log
