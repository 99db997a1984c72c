#include "common/cuda/launch.hpp"
#include "common/sys/refuse_unless.hpp"
#include "labs/05_device_prims/reduction/reduction.hpp"
#include "labs/05_device_prims/signal.hpp"
#include "labs/06_allreduce/algorithms/call.hpp"
#include "symm/nodes/exchange.hpp"

namespace symm {
namespace {

/// One thread waits. If it gives up, it makes the rank's communicator give up too. Why the part has
/// failed, the host knows.
struct AwaitPart {
    simt::Timeout timeout;
    simt::Timeout kernels;
    int rank;
    const std::uint32_t* done;
    std::uint32_t part;

    __host__ __device__ void operator()(const simt::ThreadBlock&) const {
        simt::Waiter waiter(timeout);
        if (!wait_signal(waiter, done, {simt::Wait::kSignal, rank, rank, part})) {
            simt::Waiter(kernels).fail({simt::Wait::kMachines, rank, rank, part}, 0);
        }
    }
};

}  // namespace

void launch_await_part(CUstream stream, const simt::Timeout& timeout, const simt::Timeout& kernels,
                       int rank, const std::uint32_t* done, std::uint32_t part) {
    launch(stream, 1, 1, AwaitPart{timeout, kernels, rank, done, part});
}

void reduce_on_host(const RailCall& call, const std::vector<const std::byte*>& sources,
                    std::byte* to, std::size_t count) {
    const Reduction reduction(call.op, call.ranks, is_signed_integer(call.type));
    with_kernel_type(call.type, [&](auto zero) {
        using T = decltype(zero);
        using Pack = simt::Pack16;
        constexpr int kMost = kMaxAllReduceRanks;
        refuse_unless(sources.size() <= kMost, "{} machines are too many for one sum",
                      sources.size());
        for (std::size_t i = 0; i < count; i += kPerPack<T, Pack>) {
            Pack packs[kMost] = {};
            for (std::size_t m = 0; m < sources.size(); ++m) {
                packs[m] =
                    load_elements<Pack>(reinterpret_cast<const T*>(sources[m]) + i, count - i);
            }
            const Pack all = reduction.reduce<T>(packs, static_cast<int>(sources.size()));
            store_elements(reinterpret_cast<T*>(to) + i, all, count - i);
        }
    });
}

}  // namespace symm
