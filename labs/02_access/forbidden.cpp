#include "labs/02_access/forbidden.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <stdexcept>
#include <system_error>

#include "common/cli/cli.hpp"
#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/pattern/pattern.hpp"
#include "common/sys/descriptor.hpp"
#include "common/sys/process.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/02_access/access.hpp"
#include "labs/02_access/kernels.hpp"

namespace symm {
namespace {

constexpr std::string_view kFirst = "first: ";
constexpr std::string_view kNext = "next: ";

/// The line of `text` that starts with `label`, without it.
std::string line_of(const std::string& text, std::string_view label) {
    for (std::size_t start = 0; start < text.size();) {
        const std::size_t end = std::min(text.find('\n', start), text.size());
        const std::string_view line(text.data() + start, end - start);
        if (line.starts_with(label)) {
            return std::string(line.substr(label.size()));
        }
        start = end + 1;
    }
    return {};
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

std::vector<Forbidden> all_forbidden() {
    return {Forbidden::kLoadNeverAllowed, Forbidden::kStoreNeverAllowed, Forbidden::kStoreReadOnly,
            Forbidden::kLoadTakenAway, Forbidden::kStoreTakenAway};
}

std::string_view name_of(Forbidden kind) {
    switch (kind) {
        case Forbidden::kLoadNeverAllowed:
            return "load-never-allowed";
        case Forbidden::kStoreNeverAllowed:
            return "store-never-allowed";
        case Forbidden::kStoreReadOnly:
            return "store-read-only";
        case Forbidden::kLoadTakenAway:
            return "load-taken-away";
        case Forbidden::kStoreTakenAway:
            break;
    }
    return "store-taken-away";
}

Forbidden forbidden_from(std::string_view name) {
    for (const Forbidden kind : all_forbidden()) {
        if (name == name_of(kind)) {
            return kind;
        }
    }
    throw UsageError(
        fmt::format("'{}' is nothing forbidden: say load-never-allowed, "
                    "store-never-allowed, store-read-only, load-taken-away or "
                    "store-taken-away",
                    name));
}

bool ForbiddenReport::as_expected() const {
    const std::string_view lost = name_of(CUDA_ERROR_ILLEGAL_ADDRESS);
    return first.find(lost) != std::string::npos && next.find(lost) != std::string::npos;
}

ForbiddenReport show_forbidden(const std::string& program, Forbidden kind, Deadline deadline) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe2()");
    }
    const UniqueFd reading(ends[0]);
    UniqueFd writing(ends[1]);
    Command command;
    command.arguments = {program, "--driver", is_emulated() ? "emulated" : "native",
                         std::string(kForbiddenOption), std::string(name_of(kind))};
    command.standard_output = writing.get();
    Process child(command);
    writing.reset();  // the child's is the last one now: its end is the end of the text
    // The report is two lines, which a pipe holds: the child never waits for its reader.
    const auto status = child.wait(deadline);
    if (!status) {
        throw std::runtime_error(fmt::format("{} {} {} did not end within {:.1f} s", program,
                                             kForbiddenOption, name_of(kind), deadline.seconds()));
    }
    const std::string text = read_all(reading.get());
    ForbiddenReport report{line_of(text, kFirst), line_of(text, kNext), status->describe()};
    if (report.first.empty() || report.next.empty()) {
        throw std::runtime_error(fmt::format("{} {} {} {} without a report", program,
                                             kForbiddenOption, name_of(kind), report.child));
    }
    return report;
}

Bystander::Bystander(std::span<const Gpu> gpus, const PeerMatrix& matrix, int owner,
                     std::size_t bytes)
    : gpus_(gpus), buffer_(owner, bytes, matrix.users_of(owner)) {
    constexpr std::uint32_t kSeed = 0xB7;
    range_ = {buffer_.base(), bytes / sizeof(std::uint32_t), kSeed};
    const Gpu& filler = gpus_[static_cast<std::size_t>(owner)];
    const Drained before_the_buffer_goes(filler);
    pattern::fill(filler, range_);
}

std::vector<std::string> Bystander::complaints() const {
    std::vector<std::string> lines;
    for (const int user : buffer_.users()) {
        const pattern::Result verdict =
            pattern::compare(gpus_[static_cast<std::size_t>(user)], range_);
        if (!verdict.right()) {
            lines.push_back(fmt::format("device {}: {}", user, verdict.describe()));
        }
    }
    return lines;
}

int commit_forbidden(Forbidden kind) {
    constexpr std::size_t kWords = 1024;
    constexpr int kOwner = 0;
    const int culprit = devices_that_reach(kOwner).back();
    const Gpu gpu(culprit);
    const DeviceBuffer buffer(kOwner, kWords * sizeof(std::uint32_t));
    const auto set = [&](CUmemAccess_flags flags) {
        allow(buffer.base(), buffer.size(), std::span(&culprit, 1), flags);
    };
    const bool loads = kind == Forbidden::kLoadNeverAllowed || kind == Forbidden::kLoadTakenAway;
    const auto commit = [&] {
        if (loads) {
            (void)sum(gpu, buffer.base(), kWords);
        } else {
            pattern::fill(gpu, {buffer.base(), kWords, 1});
        }
    };

    try {
        switch (kind) {
            case Forbidden::kLoadNeverAllowed:
            case Forbidden::kStoreNeverAllowed:
                // On a machine with one device the culprit is the owner, whom DeviceBuffer let in.
                if (culprit == kOwner) {
                    set(CU_MEM_ACCESS_FLAGS_PROT_NONE);
                }
                break;
            case Forbidden::kStoreReadOnly:
                set(CU_MEM_ACCESS_FLAGS_PROT_READ);
                break;
            case Forbidden::kLoadTakenAway:
            case Forbidden::kStoreTakenAway:
                set(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
                commit();
                set(CU_MEM_ACCESS_FLAGS_PROT_NONE);
                break;
        }
        commit();
        fmt::print("{}the kernel ended well\n", kFirst);
    } catch (const CudaError& error) {
        fmt::print("{}{}\n", kFirst, error.what());
    }
    try {
        const Stream another;
        fmt::print("{}cuStreamCreate() succeeded\n", kNext);
    } catch (const CudaError& error) {
        fmt::print("{}{}\n", kNext, error.what());
    }
    // The owners above cannot give anything back in a lost context and would only log that.
    std::fflush(stdout);
    ::_exit(kExitRight);
}

}  // namespace symm
