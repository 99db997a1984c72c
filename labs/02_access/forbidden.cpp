#include "labs/02_access/forbidden.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <span>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/print.hpp"
#include "common/sys/process.hpp"
#include "common/test_pattern/test_pattern.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"

namespace symm {
namespace {

/// Prints the error of `call`. Returns whether it reports that the context is lost.
bool is_lost(const char* label, const std::function<void()>& call) {
    try {
        call();
    } catch (const CudaError& error) {
        fmt::print("    {}{}\n", label, error.what());
        return error.result() == CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    fmt::print("    {}no error\n", label);
    return false;
}

}  // namespace

void run_forbidden(const Forbidden& kind) {
    constexpr std::size_t kWords = 1024;
    constexpr int kOwner = 0;
    const int accessor = devices_that_reach(kOwner).back();
    const Gpu gpu(accessor);
    const MappedMemory buffer(device_memory(kOwner), kWords * sizeof(std::uint32_t));
    const test_pattern::Range data{buffer.base(), kWords, 1};
    const auto set = [&](CUmemAccess_flags flags) {
        allow(buffer.base(), buffer.size(), std::span(&accessor, 1), flags);
    };
    const auto run_kernel = [&] {
        if (kind.loads) {
            (void)test_pattern::compare(gpu, data);
        } else {
            test_pattern::fill(gpu, data);
        }
    };

    if (kind.given != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
        set(kind.given);
    }
    if (kind.given == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        run_kernel();
        set(CU_MEM_ACCESS_FLAGS_PROT_NONE);
    }
    fmt::print("{}:\n", kind.name);
    const bool stopped = is_lost("", run_kernel);
    const bool lost = is_lost("then ", [] { const Stream another; });
    // The owners above cannot release anything in a lost context, and would only log that.
    std::fflush(stdout);
    ::_exit(stopped && lost ? 0 : 1);
}

bool show_forbidden(const std::string& program, const Forbidden& kind) {
    require_written_output();  // before the child prints
    Command command;
    command.arguments = {program, "--driver", is_emulated() ? "emulated" : "native",
                         std::string(kForbiddenOption), std::string(kind.name)};
    Process child(command);
    const Deadline deadline = Deadline::standard();
    const auto status = child.wait(deadline);
    if (!status) {
        throw std::runtime_error(fmt::format("{} {} {} did not end within {:.1f} s", program,
                                             kForbiddenOption, kind.name, deadline.seconds()));
    }
    return status->success();
}

StepReport show_all_forbidden(const std::string& program, const StepContext& context) {
    StepReport report;
    report.title = "kernels without access, each in a child process";
    const std::vector<int> users = context.matrix.users_of(context.owner);
    const SharedBuffer buffer(context.owner, context.bytes, users);
    const Drained before_the_buffer_goes(context.gpus);
    const test_pattern::Range data{buffer.base(), context.bytes / sizeof(std::uint32_t), 0xB7};
    test_pattern::fill(context.gpu(context.owner), data);
    for (const Forbidden& kind : kForbidden) {
        report.expect(show_forbidden(program, kind),
                      fmt::format("{}: the kernel is stopped, the context lost", kind.name));
    }
    for (const int user : users) {
        const test_pattern::Result result = test_pattern::compare(context.gpu(user), data);
        report.expect(result.right(),
                      fmt::format("this process is not affected: device {} reads its data, {}",
                                  user, result.describe()));
    }
    return report;
}

}  // namespace symm
