#include "common/sys/error_text.hpp"

#include <fmt/core.h>

#include <unistd.h>

#include <new>
#include <system_error>
#include <utility>

#include "common/sys/print.hpp"

namespace symm {
namespace {

constexpr std::string_view kMemory =
    "The system has no memory left for this process: free some, or raise `ulimit -v` or the "
    "container's limit.";
constexpr std::pair<std::errc, std::string_view> kRemedies[] = {
    {std::errc::too_many_files_open,
     "This process has no file descriptor left: raise `ulimit -n`."},
    {std::errc::too_many_files_open_in_system,
     "The system has no file descriptor left: raise the sysctl fs.file-max."},
    {std::errc::resource_unavailable_try_again,
     "The system cannot start more threads or processes: raise `ulimit -u`, the sysctl "
     "kernel.threads-max or the container's process limit."},
    {std::errc::not_enough_memory, kMemory},
    {std::errc::file_too_large,
     "A file or a piece of memory is larger than this process may make one: raise `ulimit -f`."}};

std::string_view remedy(const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
        return kMemory;
    }
    const auto* failure = dynamic_cast<const std::system_error*>(&error);
    for (const auto& [code, text] : kRemedies) {
        if (failure != nullptr && failure->code() == code) {
            return text;
        }
    }
    return "";
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
    const std::string_view what_to_do = remedy(error);
    return fmt::format("{}{}{}", one_line(error.what()), what_to_do.empty() ? "" : ". ",
                       what_to_do);
}

void report_error(std::string_view text) noexcept {
    try {
        write_text(STDERR_FILENO, fmt::format("error: {}\n", text));
    } catch (const std::exception&) {  // there is no other way to report it
    }
}

}  // namespace symm
