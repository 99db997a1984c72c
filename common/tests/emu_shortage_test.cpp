// If the host has no more threads, memory or file descriptors, there is a CUDA error and a line
// that names the limit. Each case sets limits in a process of its own.

#include <fcntl.h>
#include <sys/resource.h>

#include <fstream>
#include <functional>
#include <new>

#include "common/emu/launch.hpp"
#include "common/tests/emu_support.hpp"

namespace symm::emu {
namespace {

// False under a sanitizer, whose own memory takes terabytes of addresses. g++ and clang++ have
// different macros for that.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsAddresses = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kLimitsAddresses = false;
#else
constexpr bool kLimitsAddresses = true;
#endif
#else
constexpr bool kLimitsAddresses = true;
#endif

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

void expect_said(const std::string& said, const char* limit) {
    EXPECT_NE(said.find(limit), std::string::npos) << said;
}

TEST_F(Shortage, DISABLED_OfMemoryInAKernelsThread) {
    ::testing::internal::CaptureStderr();
    ASSERT_EQ(run(8, 2, [](const simt::ThreadBlock&) { throw std::bad_alloc(); }), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuCtxSynchronize(), CUDA_ERROR_OUT_OF_MEMORY);
    expect_said(::testing::internal::GetCapturedStderr(), "ulimit -v");
}

TEST_F(Shortage, DISABLED_OfMemoryForAKernelsBlocks) {
    ASSERT_EQ(run(8, 1, [](const simt::ThreadBlock&) {}),
              CUDA_SUCCESS);  // the stream has its thread
    ASSERT_EQ(emu::cuCtxSynchronize(), CUDA_SUCCESS);
    ::testing::internal::CaptureStderr();
    limit_addresses(512 * 1024);
    ASSERT_EQ(launch_kernel(nullptr, {"test kernel", dim3(500), dim3(1), 200 * 1024,
                                      [](const simt::ThreadBlock&) {}}),  // malloc has less
              CUDA_SUCCESS);
    EXPECT_EQ(emu::cuCtxSynchronize(), CUDA_ERROR_OUT_OF_MEMORY);
    limit(RLIMIT_AS, RLIM_INFINITY);
    expect_said(::testing::internal::GetCapturedStderr(), "ulimit -v");
}

TEST_F(Shortage, DISABLED_OfThreads) {
    // As many fibers as the kernel below has, but only eight threads for blocks.
    ASSERT_EQ(run(8, 8, [](const simt::ThreadBlock&) {}), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuCtxSynchronize(), CUDA_SUCCESS);
    ::testing::internal::CaptureStderr();
    limit_addresses(1 << 20);  // for the stacks of some, not all
    ASSERT_EQ(launch_kernel(nullptr, {"test kernel", dim3(64), dim3(1), 0,
                                      [](const simt::ThreadBlock& block) { block.sync(); }}),
              CUDA_SUCCESS);
    EXPECT_EQ(emu::cuCtxSynchronize(), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    limit(RLIMIT_AS, RLIM_INFINITY);
    expect_said(::testing::internal::GetCapturedStderr(), "ulimit -u");
}

TEST_F(Shortage, DISABLED_OfMemoryForStacks) {
    ASSERT_EQ(run(8, 1, [](const simt::ThreadBlock&) {}), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuCtxSynchronize(), CUDA_SUCCESS);
    ::testing::internal::CaptureStderr();
    limit_addresses(4 << 20);  // for some, not all
    ASSERT_EQ(run(8, 64, [](const simt::ThreadBlock& block) { block.sync(); }), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuCtxSynchronize(), CUDA_ERROR_OUT_OF_MEMORY);
    limit(RLIMIT_AS, RLIM_INFINITY);
    expect_said(::testing::internal::GetCapturedStderr(), "ulimit -v");
}

TEST_F(Shortage, DISABLED_OfAStreamsThread) {
    CUstream stream = nullptr;
    ASSERT_EQ(emu::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ::testing::internal::CaptureStderr();
    limit_addresses(1 << 20);
    EXPECT_EQ(launch_kernel(stream,
                            {"test kernel", dim3(1), dim3(1), 0, [](const simt::ThreadBlock&) {}}),
              CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    limit(RLIMIT_AS, RLIM_INFINITY);
    expect_said(::testing::internal::GetCapturedStderr(), "ulimit -u");
    EXPECT_EQ(emu::cuStreamDestroy(stream), CUDA_SUCCESS);
}

TEST_F(Shortage, DISABLED_OfDescriptors) {
    const CUmemAllocationProp properties = device_memory();
    Mapped memory(kBlock, properties);
    ::testing::internal::CaptureStderr();
    int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);  // gets the lowest free number
    limit(RLIMIT_NOFILE, next + 1);
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr pointer = 0;
    int fd = -1;
    EXPECT_EQ(emu::cuMemCreate(&handle, kBlock, &properties, 0), CUDA_ERROR_OPERATING_SYSTEM);
    EXPECT_EQ(emu::cuMemAlloc(&pointer, kBlock), CUDA_ERROR_OPERATING_SYSTEM);
    EXPECT_EQ(emu::cuMemExportToShareableHandle(&fd, memory.handle,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
              CUDA_ERROR_OPERATING_SYSTEM);
    EXPECT_EQ(emu::cuMemImportFromShareableHandle(
                  &handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(next)),
                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_ERROR_OPERATING_SYSTEM);
    ::close(next);
    expect_said(::testing::internal::GetCapturedStderr(), "memfd_create: no file descriptors");
}

TEST(ShortageOfTheHost, IsNamedAndEndsInACudaError) {
    expect_passes("Shortage.DISABLED_OfMemoryInAKernelsThread");
    expect_passes("Shortage.DISABLED_OfDescriptors");
    if (kLimitsAddresses) {
        expect_passes("Shortage.DISABLED_OfMemoryForAKernelsBlocks");
        expect_passes("Shortage.DISABLED_OfThreads");
        expect_passes("Shortage.DISABLED_OfMemoryForStacks");
        expect_passes("Shortage.DISABLED_OfAStreamsThread");
    }
}

}  // namespace
}  // namespace symm::emu
