#include "common/sys/error_text.hpp"

#include <fmt/core.h>

#include <unistd.h>

#include <new>
#include <system_error>

#include "common/sys/print.hpp"

namespace symm {
namespace {

std::string_view remedy(const std::exception& error) {
    constexpr std::string_view kMemory =
        ". The system has no memory left for this process: free some, or raise `ulimit -v` or the "
        "container's limit.";
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
        return kMemory;
    }
    const auto* failure = dynamic_cast<const std::system_error*>(&error);
    if (failure == nullptr) {
        return "";
    }
    switch (static_cast<std::errc>(failure->code().value())) {
        case std::errc::too_many_files_open:
            return ". This process has no file descriptor left: raise `ulimit -n`.";
        case std::errc::too_many_files_open_in_system:
            return ". The system has no file descriptor left: raise the sysctl fs.file-max.";
        case std::errc::resource_unavailable_try_again:
            return ". The system cannot start more threads or processes: raise `ulimit -u`, the "
                   "sysctl kernel.threads-max or the container's process limit.";
        case std::errc::not_enough_memory:
            return kMemory;
        case std::errc::file_too_large:
            return ". A file or a piece of memory is larger than this process may make one: raise "
                   "`ulimit -f`.";
        default:
            return "";
    }
}

}  // namespace

std::string one_line(std::string_view text) {
    std::string line;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte != 0x7f) {
            line += c;
        } else {
            line += c == '\n' ? "\\n" : c == '\t' ? "\\t" : fmt::format("\\x{:02x}", byte);
        }
    }
    return line;
}

std::string error_text(const std::exception& error) {
    return one_line(error.what()).append(remedy(error));
}

void report_error(std::string_view text) noexcept {
    try {
        write_text(STDERR_FILENO, fmt::format("error: {}\n", text));
    } catch (const std::exception&) {  // there is no other way to report it
    }
}

}  // namespace symm
