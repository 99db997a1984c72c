#include "labs/02_access/gpu.hpp"

#include <algorithm>

#include "common/cuda/driver.hpp"

namespace symm {
namespace {

// 512 threads with eight loads of 16 bytes in flight each, twice on every multiprocessor, are some
// 16 MiB on their way: far more than a link of 450 GB/s and a microsecond's distance can hold.
constexpr unsigned kThreads = 512;
constexpr unsigned kBlocksEach = 2;
constexpr unsigned kMostBlocks = 1024;  // results() has a slot for each

// A thread of an emulated GPU is one of the operating system: enough to meet in a block, no more.
constexpr unsigned kEmulatedThreads = 32;
constexpr unsigned kEmulatedBlocksEach = 1;

unsigned attribute(const Device& device, CUdevice_attribute name) {
    return static_cast<unsigned>(std::max(1, device.attribute(name)));
}

}  // namespace

Gpu::Gpu(int ordinal)
    : device_(ordinal),
      results_(kResultBytes),
      multiprocessors_(attribute(device_, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)),
      threads_(std::min(is_emulated() ? kEmulatedThreads : kThreads,
                        attribute(device_, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK))),
      blocks_each_(std::clamp(
          attribute(device_, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / threads_, 1u,
          is_emulated() ? kEmulatedBlocksEach : kBlocksEach)) {}

LaunchShape Gpu::shape() const {
    return {std::min(multiprocessors_ * blocks_each_, kMostBlocks), threads_};
}

Drained::~Drained() {
    for (const Gpu& gpu : gpus_) {
        try {
            gpu.wait("work that is left");
        } catch (const std::exception&) {  // whoever queued it knows already, or learns it next
        }
    }
}

}  // namespace symm
