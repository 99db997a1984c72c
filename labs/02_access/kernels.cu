// A kernel of this repository is a struct. Its members are the parameters. Each thread runs its
// operator(), and learns its own number from the ThreadBlock. CUDA C++ writes
//
//     __global__ void copy(uint4* to, const uint4* from, size_t count) {
//         size_t i = blockIdx.x * blockDim.x + threadIdx.x;
//         for (; i < count; i += gridDim.x * blockDim.x) ...
//     }
//     copy<<<blocks, threads, 0, stream>>>(to, from, count);
//
// and this repository writes
//
//     struct Copy {
//         uint4* to;
//         const uint4* from;
//         size_t count;
//         __host__ __device__ void operator()(const ThreadBlock& block) const ...
//     };
//     launch(stream, blocks, threads, Copy{to, from, count});
//
// so that one source runs on two machines. On a GPU, launch() starts a __global__ template that
// calls the struct's operator(); on an emulated GPU, host threads call it (common/cuda/launch.hpp).

#include "labs/02_access/kernels.hpp"

#include "common/cuda/launch.hpp"
#include "common/simt/atomic.hpp"
#include "common/simt/pack.hpp"

namespace symm {
namespace access_kernels {

using simt::Pack16;
using simt::ThreadBlock;

/// All loads of a round are issued before the first of their values is used. A remote load takes
/// more than half a microsecond; only many loads in flight at a time hide that. The vectors of 16
/// bytes that each thread copies, drawn for a grid of 2 threads, kInFlight = 3 and 15 vectors:
///
///     vector  | 0 1 2 3 4 5 | 6 7 8 9 10 11 | 12 13 14
///     thread  | 0 1 0 1 0 1 | 0 1 0 1 0  1  | 0  1  0
///             | a round     | a round       | the rest, one by one
///
/// Neighbouring threads load neighbouring vectors, so that a warp's loads fill whole lines.
struct Copy {
    static constexpr int kInFlight = 8;
    Pack16* to;
    const Pack16* from;
    std::size_t count;

    __host__ __device__ void operator()(const ThreadBlock& block) const {
        const std::size_t step = block.grid_size();
        std::size_t i = block.grid_rank();
        for (; i + (kInFlight - 1) * step < count; i += kInFlight * step) {
            Pack16 held[kInFlight];
            for (int k = 0; k < kInFlight; ++k) {
                held[k] = from[i + k * step];
            }
            for (int k = 0; k < kInFlight; ++k) {
                to[i + k * step] = held[k];
            }
        }
        for (; i < count; i += step) {
            to[i] = from[i];
        }
    }
};

/// Relaxed loads of system scope: each bypasses the L1 cache of the device that reads.
struct Chase {
    const std::uint32_t* next;
    std::uint32_t hops;
    std::uint32_t* end;

    __host__ __device__ void operator()(const ThreadBlock&) const {
        std::uint32_t at = 0;
        for (std::uint32_t i = 0; i < hops; ++i) {
            at = simt::load(next + at, simt::Order::kRelaxed);
        }
        *end = at;
    }
};

struct Gate {
    const std::uint32_t* open;
    simt::Timeout timeout;

    __host__ __device__ void operator()(const ThreadBlock&) const {
        // Relaxed: the gate only signals the start, it hands over no data.
        simt::Waiter(timeout).until({simt::Wait::kSignal, -1, -1, 1}, [this](std::uint64_t& seen) {
            seen = simt::load(open, simt::Order::kRelaxed);
            return seen != 0;
        });
    }
};

}  // namespace access_kernels

void queue_copy(CUstream stream, LaunchShape shape, CUdeviceptr to, CUdeviceptr from,
                std::size_t bytes) {
    using simt::Pack16;
    launch(stream, shape.blocks, shape.threads,
           access_kernels::Copy{reinterpret_cast<Pack16*>(to),
                                reinterpret_cast<const Pack16*>(from), bytes / sizeof(Pack16)});
}

void queue_chase(CUstream stream, CUdeviceptr at, std::uint32_t hops, std::uint32_t* end) {
    launch(stream, 1, 1,
           access_kernels::Chase{reinterpret_cast<const std::uint32_t*>(at), hops, end});
}

void queue_gate(CUstream stream, const std::uint32_t* open, const simt::Timeout& timeout) {
    launch(stream, 1, 1, access_kernels::Gate{open, timeout});
}

}  // namespace symm
