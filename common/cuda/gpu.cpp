#include "common/cuda/gpu.hpp"

#include <algorithm>
#include <chrono>

#include "common/cuda/driver.hpp"

namespace symm {
namespace {

LaunchShape shape_for(int device) {
    const auto attribute = [&](CUdevice_attribute name) {
        return static_cast<unsigned>(std::max(1, device_attribute(device, name)));
    };
    // On a GPU: two blocks of 512 threads per multiprocessor, each thread with eight loads of 16
    // bytes, have about 16 MiB in flight. A link of 450 GB/s with a latency of one microsecond
    // needs far less. On an emulated GPU each thread needs a stack on the host, so blocks
    // are small.
    const unsigned threads =
        std::min(is_emulated() ? 32u : 512u, attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    const unsigned resident =
        attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / threads;
    const unsigned blocks = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
                            std::clamp(resident, 1u, is_emulated() ? 1u : 2u);
    return {std::min(blocks, Gpu::kMostBlocks), threads};
}

}  // namespace

Gpu::Gpu(int ordinal) : device_(ordinal), results_(kResultBytes), shape_(shape_for(ordinal)) {}

std::vector<Gpu> all_gpus() {
    std::vector<Gpu> gpus;
    for (int device = 0; device < device_count(); ++device) {
        gpus.emplace_back(device);
    }
    return gpus;
}

Drained::~Drained() {
    for (const Gpu& gpu : gpus_) {
        try {
            // Longer than the caller's own wait, which may have been the one that timed out.
            gpu.owned_stream().synchronize("the remaining work",
                                           Deadline::after(std::chrono::minutes{1}));
        } catch (const std::exception&) {  // the caller knows already, or learns it next
        }
    }
}

}  // namespace symm
