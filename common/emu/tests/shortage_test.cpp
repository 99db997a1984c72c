// If the host has no more threads, memory or file descriptors, there is a CUDA error and a line
// that names the limit. Each case sets limits in a process of its own.

#include <fcntl.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <new>
#include <string_view>

#include "common/emu/tests/support.hpp"

namespace symm::emu {
namespace {

using Shortage = EmulatedDriver;

void limit(__rlimit_resource resource, rlim_t most) {
    rlimit limits{};
    ASSERT_EQ(::getrlimit(resource, &limits), 0);
    limits.rlim_cur = most;
    ASSERT_EQ(::setrlimit(resource, &limits), 0);
}

/// Lets the process have this much more address space.
void limit_addresses(std::size_t more) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    limit(RLIMIT_AS, pages * static_cast<std::size_t>(::getpagesize()) + more);
}

void nothing_done(const simt::ThreadBlock&) {}

// Expects that the call, with less left than it needs, prints a line that names the limit.
void expect_named(const char* limit_named, const std::function<void()>& call) {
    ::testing::internal::CaptureStderr();
    call();
    limit(RLIMIT_AS, RLIM_INFINITY);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(limit_named), std::string::npos) << said;
}

// The context is lost: replaces it, so that the fixture finds a usable one.
void expect_lost_for(CUresult result) {
    EXPECT_RESULT(cuCtxSynchronize(), result);
    limit(RLIMIT_AS, RLIM_INFINITY);
    CUcontext context = nullptr;
    EXPECT_OK(cuDevicePrimaryCtxRelease(0));
    EXPECT_OK(cuDevicePrimaryCtxRetain(&context, 0));
}

TEST_F(Shortage, DISABLED_OfMemoryInAKernelsThread) {
    expect_named("ulimit -v", [] {
        ASSERT_OK(run(8, 2, [](const simt::ThreadBlock&) { throw std::bad_alloc(); }));
        expect_lost_for(CUDA_ERROR_OUT_OF_MEMORY);
    });
}

TEST_F(Shortage, DISABLED_OfMemoryForAKernelsBlocks) {
    ASSERT_OK(run(8, 1, nothing_done));  // the stream has its thread
    ASSERT_OK(cuCtxSynchronize());
    expect_named("ulimit -v", [] {
        limit_addresses(512 * 1024);
        ASSERT_OK(run(500, 1, nothing_done, nullptr, 200 * 1024));  // malloc has less
        expect_lost_for(CUDA_ERROR_OUT_OF_MEMORY);
    });
}

TEST_F(Shortage, DISABLED_OfThreads) {
    // As many fibers as the kernel below has.
    ASSERT_OK(run(8, 8, nothing_done));
    ASSERT_OK(cuCtxSynchronize());
    expect_named("ulimit -u", [] {
        limit_addresses(1 << 20);  // for the stacks of some, not all
        ASSERT_OK(run(64, 1, [](const simt::ThreadBlock& block) {
            for (;;) {  // until the launch is abandoned: no stack is used twice
                block.sync();
            }
        }));
        expect_lost_for(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    });
}

TEST_F(Shortage, DISABLED_OfMemoryForStacks) {
    ASSERT_OK(run(8, 1, nothing_done));
    ASSERT_OK(cuCtxSynchronize());
    expect_named("ulimit -v", [] {
        limit_addresses(4 << 20);  // for some, not all
        ASSERT_OK(run(1, 1000, [](const simt::ThreadBlock& block) { block.sync(); }));
        expect_lost_for(CUDA_ERROR_OUT_OF_MEMORY);
    });
}

TEST_F(Shortage, DISABLED_OfAStreamsThread) {
    const Stream stream;
    expect_named("ulimit -u", [&] {
        limit_addresses(1 << 20);
        EXPECT_RESULT(run(1, 1, nothing_done, stream), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    });
}

TEST_F(Shortage, DISABLED_OfDescriptors) {
    const CUmemAllocationProp properties = memory_of(0);
    Memory memory(properties, kBlock);
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);  // gets the lowest free number
    expect_named("memfd_create: no file descriptors", [&] {
        limit(RLIMIT_NOFILE, static_cast<rlim_t>(next) + 1);
        CUmemGenericAllocationHandle handle = 0;
        CUdeviceptr pointer = 0;
        int fd = -1;
        constexpr auto kPosixFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        for (const CUresult result :
             {cuMemCreate(&handle, kBlock, &properties, 0), cuMemAlloc(&pointer, kBlock),
              cuMemExportToShareableHandle(&fd, memory.handle(), kPosixFile, 0),
              cuMemImportFromShareableHandle(
                  &handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(next)),
                  kPosixFile)}) {
            EXPECT_RESULT(result, CUDA_ERROR_OPERATING_SYSTEM);
        }
        ::close(next);
    });
}

// The signal of a file that grows too large would end the program, which has not chosen that.
TEST_F(Shortage, DISABLED_OfFileSizes) {
    ASSERT_EQ(::signal(SIGXFSZ, SIG_DFL), SIG_DFL);
    expect_named("ulimit -f", [] {
        limit(RLIMIT_FSIZE, kBlock);  // a header follows the data
        const CUmemAllocationProp properties = memory_of(0);
        CUmemGenericAllocationHandle handle = 0;
        CUdeviceptr pointer = 0;
        EXPECT_RESULT(cuMemCreate(&handle, kBlock, &properties, 0), CUDA_ERROR_OPERATING_SYSTEM);
        EXPECT_RESULT(cuMemAlloc(&pointer, kBlock + 1), CUDA_ERROR_OPERATING_SYSTEM);
        limit(RLIMIT_FSIZE, RLIM_INFINITY);
    });
}

TEST(ShortageOfTheHost, IsNamedAndEndsInACudaError) {
    expect_passes("Shortage.DISABLED_OfFileSizes");
    expect_passes("Shortage.DISABLED_OfMemoryInAKernelsThread");
    expect_passes("Shortage.DISABLED_OfDescriptors");
    // A sanitizer's own memory takes terabytes of addresses.
    if (std::string_view(SYMM_SANITIZE).empty()) {
        expect_passes("Shortage.DISABLED_OfMemoryForAKernelsBlocks");
        expect_passes("Shortage.DISABLED_OfThreads");
        expect_passes("Shortage.DISABLED_OfMemoryForStacks");
        expect_passes("Shortage.DISABLED_OfAStreamsThread");
    }
}

}  // namespace
}  // namespace symm::emu
