#pragma once
/// \file
/// An AllReduce algorithm of your own, in a shared object for SYMM_ALGORITHMS. Needs no library of
/// symm: a .cu file, or .cpp for emulated GPUs only.
///
/// ```cpp
/// #include <symm/algorithm.hpp>
/// #include <symm/kernel.hpp>
///
/// template <class T, int kMost>  // at most kMost ranks
/// struct Mine : symm::AlgorithmParams {
///     __host__ __device__ void operator()(const symm::simt::ThreadBlock& block) const { ... }
/// };
///
/// SYMM_ALGORITHMS(symm::algorithm<Mine>({.name = "mine", .slots_per_peer = 1024}))
/// ```
///
/// symm/examples/README.md builds one; symm/collectives/README.md has the rules for kernels.

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "labs/05_device_prims/reduction/data_type.hpp"
#include "labs/06_allreduce/algorithms/loaded/abi.h"
#include "labs/06_allreduce/communicator/own_memory.hpp"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#endif

namespace symm {

/// What a kernel gets: the call and the mailbox (MailboxParams), and for data that stays in the
/// ranks' own buffers a rendezvous, a barrier and turns.
struct AlgorithmParams : MailboxParams {
    Rendezvous rendezvous;
    BarrierView barrier;
    SymmetricPointer<TurnsMemory> turns;
};

struct AlgorithmTraits {
    const char* name;                   ///< For --algo and SYMM_ALGO.
    const char* why = "as registered";  ///< A call takes it.
    unsigned slots_per_peer = 0;  ///< Of what a rank sends to one peer; a power of two for Packets.
    bool has_sentinel = false;    ///< The mailbox's format is SentinelPacks: floating types only.
    bool needs_windows = false;   ///< Peers use the buffers in place.
    std::size_t bytes_per_thread = 16;
    unsigned most_blocks = 0;  ///< Of a launch; 0: as many as fit.
    std::size_t at_once = 0;   ///< The most bytes of one launch; 0: any.
    /// Calls of more than `above` bytes, up to `up_to`, take it without being asked.
    std::size_t above = 0, up_to = 0;
};

namespace detail {

#ifdef __CUDACC__
template <class Kernel>
__global__ void algorithm_entry(const __grid_constant__ Kernel kernel) {
    kernel(simt::ThreadBlock{});
}
#endif

/// A block of the program's emulator, for kernels of this object.
struct ForeignBlock final : simt::HostBlock {
    explicit ForeignBlock(const symm_host_block& block) : theirs(block) {
        group_index = dim3(block.index);
        grid_dim = dim3(block.blocks);
        size = block.size;
        shared = block.shared;
        exchange = block.exchange;
    }
    bool sync(bool vote) override { return theirs.sync(theirs.self, vote ? 1 : 0) != 0; }
    void sync_warp(unsigned warp) override { theirs.sync_warp(theirs.self, warp); }
    void sync_named(unsigned number, unsigned threads) override {
        theirs.sync_named(theirs.self, number, threads);
    }
    const symm_host_block& theirs;
};

/// The program's, the same for all threads.
inline std::atomic<void (*)(int idle)> give_way_there = nullptr;

template <template <class, int> class Kernel>
struct AlgorithmOf {
    static inline AlgorithmTraits traits{};

    template <class T, int kMost>
    static void run(const symm_host_block* block, const void* parameters) {
        ForeignBlock host(*block);
        give_way_there.store(block->give_way, std::memory_order_relaxed);
        simt::set_give_way(
            [](bool idle) { give_way_there.load(std::memory_order_relaxed)(idle ? 1 : 0); });
        (*static_cast<const Kernel<T, kMost>*>(parameters))(
            simt::ThreadBlock(&host, block->thread));
    }

    template <class T, int kMost>
    static int find_on_gpu([[maybe_unused]] unsigned threads, [[maybe_unused]] void** function,
                           [[maybe_unused]] unsigned* resident) {
#ifdef __CUDACC__
        const auto* const entry = reinterpret_cast<const void*>(&algorithm_entry<Kernel<T, kMost>>);
        int device = 0, multiprocessors = 0, blocks = 0;
        cudaError_t result = cudaSuccess;
        const auto succeeds = [&](cudaError_t call) {
            result = call;
            return result == cudaSuccess;
        };
        if (succeeds(cudaGetFuncBySymbol(reinterpret_cast<cudaFunction_t*>(function), entry)) &&
            succeeds(cudaGetDevice(&device)) &&
            succeeds(
                cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device)) &&
            succeeds(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                &blocks, entry, static_cast<int>(threads),
                simt::shared_bytes_of<Kernel<T, kMost>>()))) {
            *resident = static_cast<unsigned>(blocks * multiprocessors);
        }
        return static_cast<int>(result);
#else
        return 0;
#endif
    }

    /// Null: compiled for emulated GPUs only.
    template <class T, int kMost>
    static constexpr auto on_gpu() -> int (*)(unsigned, void**, unsigned*) {
#ifdef __CUDACC__
        return find_on_gpu<T, kMost>;
#else
        return nullptr;
#endif
    }

    template <class T, int kMost>
    static const symm_kernel* kernel_of() {
        static const symm_kernel kernel{traits.name, sizeof(Kernel<T, kMost>),
                                        simt::shared_bytes_of<Kernel<T, kMost>>(), run<T, kMost>,
                                        on_gpu<T, kMost>()};
        return &kernel;
    }

    static const symm_kernel* kernel(int type, int ranks) {
        const symm_kernel* found = nullptr;
        with_kernel_type(static_cast<DataType>(type), [&](auto zero) {
            using T = decltype(zero);
            found = ranks <= 2   ? kernel_of<T, 2>()
                    : ranks <= 4 ? kernel_of<T, 4>()
                                 : kernel_of<T, 8>();
        });
        return found;
    }

    static void fill(const symm_launch* launch, void* parameters) {
        const SymmetricPointer<OwnMemory> memory{static_cast<OwnMemory*>(launch->memory),
                                                 launch->stride};
        const auto type = static_cast<DataType>(launch->type);
        const auto op = static_cast<ReduceOp>(launch->op);
        const auto address = [](const void* pointer) {
            return reinterpret_cast<CUdeviceptr>(pointer);
        };
        auto* const params = new (parameters) AlgorithmParams{
            {{Reduction(op, launch->ranks, is_signed_integer(type)),
              {static_cast<std::uint32_t*>(launch->gave_up),
               static_cast<simt::WaitReport*>(launch->report), launch->limit_ns},
              launch->rank,
              launch->ranks},
             mailbox_of(memory, launch->rank, traits.slots_per_peer),
             {{type, op}, address(launch->in), address(launch->out), launch->count}},
            {memory.member(&OwnMemory::rendezvous), launch->rank, launch->ranks, {}},
            {memory.member(&OwnMemory::barrier), launch->rank, launch->ranks},
            memory.member(&OwnMemory::turns)};
        for (int p = 0; p < launch->ranks; ++p) {
            params->rendezvous.mine[p] = {launch->seen_in[p], launch->seen_out[p]};
        }
    }
};

}  // namespace detail

/// The entry for a kernel. Call it once for each.
template <template <class, int> class Kernel>
symm_algorithm algorithm(const AlgorithmTraits& traits) {
    using Of = detail::AlgorithmOf<Kernel>;
    Of::traits = traits;
    return {traits.name,
            traits.why,
            traits.has_sentinel ? 1 : 0,
            traits.needs_windows ? 1 : 0,
            [](int ranks) { return OwnMemory::bytes(ranks, Of::traits.slots_per_peer); },
            traits.has_sentinel ? offsetof(OwnMemory, slots) : ~std::size_t{0},
            traits.bytes_per_thread,
            traits.most_blocks,
            traits.at_once,
            [](int) { return Of::traits.above; },
            [](int) { return Of::traits.up_to; },
            Of::kernel,
            Of::fill};
}

}  // namespace symm

/// Exports the algorithms, which `algorithm<Kernel>(traits)` returns.
#define SYMM_ALGORITHMS(...)                                                                      \
    extern "C" __attribute__((visibility("default"))) const symm_algorithm* symm_algorithms(      \
        unsigned version, unsigned number) {                                                      \
        static const std::vector<symm_algorithm> all{__VA_ARGS__};                                \
        return version == SYMM_ALGORITHM_VERSION && number < all.size() ? &all[number] : nullptr; \
    }
