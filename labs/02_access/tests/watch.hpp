#pragma once
/// \file
/// Reports the kernels, copies and fills that devices run, for tests that check which device did
/// something. Emulated driver only.

#include <functional>
#include <span>
#include <string>
#include <utility>

#include "common/cuda/driver.hpp"
#include "common/cuda/gpu.hpp"
#include "common/emu/kernels/launch.hpp"

namespace symm {

/// Something that was queued on a device's stream.
struct Work {
    int device;
    std::string what;       ///< A kernel's type, or a driver function.
    CUdeviceptr to = 0;     ///< Functions only.
    std::size_t bytes = 0;  ///< Functions only.
};

/// While it exists, it passes all work queued on the streams of `gpus` to `seen`, in order.
/// Only one may exist at a time.
class Watch {
public:
    Watch(std::span<const Gpu> gpus, std::function<void(const Work&)> seen) {
        now() = [gpus, seen = std::move(seen)](CUstream stream, Work work) {
            for (const Gpu& gpu : gpus) {
                if (gpu.stream() == stream) {
                    work.device = gpu.ordinal();
                    seen(work);
                }
            }
        };
        static DriverTable watched = driver();
        watched.cuMemsetD8Async_ = [](CUdeviceptr to, unsigned char value, std::size_t bytes,
                                      CUstream stream) {
            now()(stream, {-1, "cuMemset", to, bytes});
            return driver().cuMemsetD8Async_(to, value, bytes, stream);
        };
        watched.cuMemsetD32Async_ = [](CUdeviceptr to, unsigned value, std::size_t words,
                                       CUstream stream) {
            now()(stream, {-1, "cuMemset", to, words * sizeof(value)});
            return driver().cuMemsetD32Async_(to, value, words, stream);
        };
        watched.cuMemcpyAsync_ = [](CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                    CUstream stream) {
            now()(stream, {-1, "cuMemcpyAsync", to, bytes});
            return driver().cuMemcpyAsync_(to, from, bytes, stream);
        };
        use_driver_table(&watched);
        emu::launch_observer = [](CUstream stream, const emu::KernelLaunch& launch, CUresult) {
            now()(stream, {-1, launch.name});
        };
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() {
        emu::launch_observer = nullptr;
        use_driver_table(&driver());
    }

private:
    static const DriverTable& driver() {
        static const DriverTable& emulated = driver_table();  // read before it is replaced
        return emulated;
    }
    static std::function<void(CUstream, Work)>& now() {
        static std::function<void(CUstream, Work)> current;
        return current;
    }
};

}  // namespace symm
