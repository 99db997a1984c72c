#include "labs/02_access/forbidden.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <system_error>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/pattern/pattern.hpp"
#include "common/sys/descriptor.hpp"
#include "common/sys/process.hpp"
#include "labs/02_access/access.hpp"
#include "labs/02_access/shared_buffer.hpp"

namespace symm {
namespace {

constexpr std::string_view kFirst = "first: ";
constexpr std::string_view kNext = "next: ";

/// The line of `text` that starts with `label`, without it.
std::string line_of(const std::string& text, std::string_view label) {
    const std::size_t start = text.find(label);
    if (start == std::string::npos) {
        return {};
    }
    const std::size_t from = start + label.size();
    return text.substr(from, text.find('\n', from) - from);
}

/// Everything that was written to a pipe whose writers have gone.
std::string read_all(int descriptor) {
    std::string text;
    char piece[512];
    while (true) {
        const ssize_t got = ::read(descriptor, piece, sizeof(piece));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return text;
        }
        text.append(piece, static_cast<std::size_t>(got));
    }
}

}  // namespace

bool ForbiddenReport::as_expected() const {
    const std::string_view lost = name_of(CUDA_ERROR_ILLEGAL_ADDRESS);
    return first.find(lost) != std::string::npos && next.find(lost) != std::string::npos;
}

ForbiddenReport show_forbidden(const std::string& program, const Forbidden& kind,
                               Deadline deadline) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe2()");
    }
    const UniqueFd reading(ends[0]);
    UniqueFd writing(ends[1]);
    Command command;
    command.arguments = {program, "--driver", is_emulated() ? "emulated" : "native",
                         std::string(kForbiddenOption), std::string(kind.name)};
    command.standard_output = writing.get();
    Process child(command);
    writing.reset();  // only the child can write now, so its end is the end of the text
    // The report is two lines, which fit into a pipe: the child never waits for its reader.
    const auto status = child.wait(deadline);
    const std::string call = fmt::format("{} {} {}", program, kForbiddenOption, kind.name);
    if (!status) {
        throw std::runtime_error(
            fmt::format("{} did not end within {:.1f} s", call, deadline.seconds()));
    }
    const std::string text = read_all(reading.get());
    ForbiddenReport report{line_of(text, kFirst), line_of(text, kNext), status->describe()};
    if (report.first.empty() || report.next.empty()) {
        throw std::runtime_error(fmt::format("{} {} without a report", call, report.child));
    }
    return report;
}

StepReport show_all_forbidden(const std::string& program, const StepContext& context) {
    StepReport all;
    all.title = "kernels without access, each in a child process";
    const auto gpu = [&](int device) -> const Gpu& {
        return context.gpus[static_cast<std::size_t>(device)];
    };
    const SharedBuffer buffer(context.owner, context.bytes, context.matrix.users_of(context.owner));
    const Drained before_the_buffer_goes(context.gpus);
    const pattern::Range data{buffer.base(), context.bytes / sizeof(std::uint32_t), 0xB7};
    pattern::fill(gpu(context.owner), data);
    for (const Forbidden& kind : kForbidden) {
        const ForbiddenReport report = show_forbidden(program, kind);
        all.lines.push_back(fmt::format("{}{}:", report.as_expected() ? "" : "WRONG: ", kind.name));
        all.lines.push_back("    " + report.first);
        all.lines.push_back("    then " + report.next);
        all.right = all.right && report.as_expected();
    }
    for (const int user : buffer.users()) {
        const pattern::Result result = pattern::compare(gpu(user), data);
        all.lines.push_back(
            fmt::format("{}this process is not affected: device {} reads its data, {}",
                        result.right() ? "" : "WRONG: ", user, result.describe()));
        all.right = all.right && result.right();
    }
    return all;
}

void run_forbidden(const Forbidden& kind) {
    constexpr std::size_t kWords = 1024;
    constexpr int kOwner = 0;
    const int accessor = devices_that_reach(kOwner).back();
    const Gpu gpu(accessor);
    const DeviceBuffer buffer(kOwner, kWords * sizeof(std::uint32_t));
    const pattern::Range data{buffer.base(), kWords, 1};
    const auto set = [&](CUmemAccess_flags flags) {
        allow(buffer.base(), buffer.size(), std::span(&accessor, 1), flags);
    };
    const auto run_kernel = [&] {
        if (kind.loads) {
            (void)pattern::compare(gpu, data);
        } else {
            pattern::fill(gpu, data);
        }
    };

    try {
        switch (kind.reason) {
            case Reason::kNeverAllowed:
                // With one device the accessor is the owner, which DeviceBuffer gave access.
                if (accessor == kOwner) {
                    set(CU_MEM_ACCESS_FLAGS_PROT_NONE);
                }
                break;
            case Reason::kReadOnly:
                set(CU_MEM_ACCESS_FLAGS_PROT_READ);
                break;
            case Reason::kTakenAway:
                set(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
                run_kernel();
                set(CU_MEM_ACCESS_FLAGS_PROT_NONE);
                break;
        }
        run_kernel();
        fmt::print("{}the kernel ended without an error\n", kFirst);
    } catch (const CudaError& error) {
        fmt::print("{}{}\n", kFirst, error.what());
    }
    try {
        const Stream another;
        fmt::print("{}cuStreamCreate() succeeded\n", kNext);
    } catch (const CudaError& error) {
        fmt::print("{}{}\n", kNext, error.what());
    }
    // The owners above cannot give anything back in a lost context, and would only log that.
    std::fflush(stdout);
    ::_exit(0);
}

}  // namespace symm
