#pragma once
/// \file
/// Shared by the tests of what only the emulated driver has. What it shares with a real one, the
/// conformance suite (common/tests/conformance) tests.

#include <cuda.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <utility>

#include "common/emu/faults.hpp"
#include "common/emu/inventory.hpp"
#include "common/emu/kernels/launch.hpp"
#include "common/tests/conformance/conformance.hpp"
#include "common/tests/run_program.hpp"

namespace symm::emu {

// NOLINTNEXTLINE: what follows is written in the suite's words.
using namespace conformance;

inline constexpr std::size_t kBlock = std::size_t{2} << 20;  ///< The granularity.
inline constexpr auto kReadOnly = CU_MEM_ACCESS_FLAGS_PROT_READ;

/// Queues a kernel.
inline CUresult run(unsigned blocks, unsigned threads,
                    std::function<void(const simt::ThreadBlock&)> body, CUstream stream = nullptr,
                    std::size_t shared = 0) {
    return launch_kernel(stream,
                         {"test kernel", dim3(blocks), dim3(threads), shared, std::move(body)});
}
/// Queues a kernel of several threads of which only the first does something.
inline CUresult run_first(std::function<void()> body) {
    return run(2, 1, [body = std::move(body)](const simt::ThreadBlock& block) {
        if (block.grid_rank() == 0) {
            body();
        }
    });
}

/// The suite's fixture; after the case, nothing is left.
class EmulatedDriver : public Driver {
protected:
    ~EmulatedDriver() override {
        clear_failures();
        EXPECT_EQ(inventory(), before_);
    }

private:
    Inventory before_ = inventory();
};

/// Another device's primary context, current while this exists.
struct OnDevice {
    explicit OnDevice(int ordinal) : device(ordinal) {
        EXPECT_OK(cuDevicePrimaryCtxRetain(&context, device));
        EXPECT_OK(cuCtxPushCurrent(context));
    }
    ~OnDevice() {
        EXPECT_OK(cuCtxSynchronize());
        EXPECT_OK(cuCtxPopCurrent(&context));
        EXPECT_OK(cuDevicePrimaryCtxRelease(device));
    }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

    int device;
    CUcontext context = nullptr;
};

/// A granule of a device's memory, which `readers` may read and write.
struct Shared : Buffer {
    Shared(int owner, std::initializer_list<int> readers) : Buffer(1, owner) {
        for (const int device : readers) {
            EXPECT_OK(give_access(base(), size(), access_for(device)));
        }
    }
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(base());
    }
};

/// The word at this address.
inline unsigned read_word(CUdeviceptr at) {
    unsigned word = 0;
    EXPECT_OK(cuMemcpyDtoH(&word, at, sizeof word));
    return word;
}

}  // namespace symm::emu
