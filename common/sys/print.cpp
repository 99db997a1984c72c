#include "common/sys/print.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "common/sys/deadline.hpp"

namespace symm {
namespace {

// std::cout still writes to this one after limit_output().
FILE* const first_stdout = stdout;

std::chrono::nanoseconds timeout() noexcept {
    try {
        return Deadline::standard_limit();
    } catch (const std::exception&) {  // the text itself reports the wrong value
        return std::chrono::seconds(30);
    }
}

}  // namespace

bool write_text(int descriptor, std::string_view text) noexcept {
    // One thread at a time: another thread's write could fill the pipe between poll() and write().
    static std::mutex mutex;
    static std::array<bool, STDERR_FILENO + 1> nobody_reads{};
    const std::lock_guard lock(mutex);
    bool& gave_up = nobody_reads.at(static_cast<std::size_t>(descriptor) % nobody_reads.size());
    // Other ranks may be waiting for this one, which matters more than its log.
    const auto deadline = Deadline::after(timeout() / (descriptor == STDERR_FILENO ? 2 : 1));
    while (!text.empty()) {
        pollfd writable{descriptor, POLLOUT, 0};
        if (gave_up || ::poll(&writable, 1, deadline.left_ms()) == 0) {
            gave_up = true;
            errno = ETIMEDOUT;
            return false;
        }
        const ssize_t written =
            ::write(descriptor, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
        if (written < 0 && errno != EINTR && errno != EAGAIN) {
            return false;
        }
        text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
    }
    return true;
}

bool print_lines(int descriptor, std::string_view prefix, std::string_view text) {
    if (descriptor == STDOUT_FILENO) {
        std::fflush(stdout);
    }
    std::istringstream lines(std::string(text) + (text.ends_with('\n') ? "" : "\n"));
    std::string piece;
    bool written_all = true;
    const auto flush = [&] {
        written_all = written_all && write_text(descriptor, piece);
        piece.clear();
    };
    for (std::string line; std::getline(lines, line);) {
        if (piece.size() + prefix.size() + line.size() + 1 > PIPE_BUF) {
            flush();
        }
        piece.append(prefix).append(line).append("\n");
    }
    flush();
    return written_all;
}

void ignore_file_size_signal() {
    ::signal(SIGXFSZ, SIG_IGN);
}

void limit_output() {
    ignore_file_size_signal();
    const auto write = [](void*, const char* text, std::size_t bytes) {
        return static_cast<ssize_t>(write_text(STDOUT_FILENO, {text, bytes}) ? bytes : 0);
    };
    if (FILE* limited = ::fopencookie(nullptr, "w", {nullptr, write, nullptr, nullptr})) {
        std::setvbuf(limited, nullptr, ::isatty(STDOUT_FILENO) != 0 ? _IOLBF : _IOFBF, BUFSIZ);
        stdout = limited;  // never closed: it is flushed when the program ends
    }
}

std::string output_error(int error) {
    return "cannot write to stdout: " +
           (error == ETIMEDOUT ? fmt::format("the pipe was not read for the {} s of SYMM_TIMEOUT",
                                             std::chrono::duration<double>(timeout()).count())
                               : std::generic_category().message(error));
}

void require_written_output() {
    for (FILE* file : {stdout, first_stdout}) {
        if (std::fflush(file) != 0 || std::ferror(file) != 0) {
            throw std::runtime_error(output_error(errno));
        }
    }
}

}  // namespace symm
