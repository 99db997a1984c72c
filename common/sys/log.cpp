// The only file that includes spdlog, which takes longer to compile than most of this repository.

#include "common/sys/log.hpp"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <atomic>
#include <mutex>

#include "common/sys/environment.hpp"
#include "common/sys/print.hpp"

namespace symm::log {
namespace {

class Stderr : public spdlog::sinks::base_sink<std::mutex> {
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t line;
        formatter_->format(message, line);
        write_text(STDERR_FILENO, {line.data(), line.size()});
    }
    void flush_() override {}
};

spdlog::logger& logger() {
    // Never destroyed: destructors of static objects log too.
    static spdlog::logger& kept = [&]() -> spdlog::logger& {
        auto& made = *new spdlog::logger("symm", std::make_shared<Stderr>());
        made.set_pattern("%H:%M:%S.%e %l: %v");
        made.set_level(spdlog::level::from_str(env::choice("SYMM_DEBUG")));
        return made;
    }();
    return kept;
}

// By Level.
constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                 spdlog::level::warn, spdlog::level::err};

std::atomic<bool> error_told = false;

}  // namespace

bool told_an_error() noexcept {
    return error_told;
}

bool enabled(Level level) noexcept {
    return logger().should_log(kLevels[static_cast<std::size_t>(level)]);
}

void write(Level level, std::string_view text) noexcept {
    if (level == Level::kError) {
        error_told = true;
    }
    try {
        logger().log(kLevels[static_cast<std::size_t>(level)],
                     spdlog::string_view_t(text.data(), text.size()));
    } catch (...) {  // there is no other way to report it
    }
}

}  // namespace symm::log
