#include "labs/06_allreduce/algorithms/tests/protocol_kernels.hpp"

#include "common/cuda/launch.hpp"
#include "labs/06_allreduce/algorithms/one_shot/one_shot.hpp"
#include "labs/06_allreduce/algorithms/push/push.hpp"
#include "labs/06_allreduce/algorithms/sentinel/one_pack.hpp"
#include "labs/06_allreduce/algorithms/sentinel/sentinel.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"

namespace symm {
namespace {

constexpr unsigned kElements = ProtocolMemory::kElements;
constexpr float kPoison = -1;

/// Unique to rank, call and index, and its sums are exact.
__host__ __device__ float input_of(int rank, unsigned call, unsigned i) {
    return static_cast<float>((call % 1024 * kElements + i) * 3 + static_cast<unsigned>(rank));
}

struct Prepare {
    ProtocolMemory* memory;
    int rank;
    unsigned call;
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        for (unsigned i = block.thread_rank(); i < kElements; i += block.size()) {
            memory->in[i] = input_of(rank, call, i);
            memory->out[i] = kPoison;
        }
    }
};

struct Compare {
    const ProtocolMemory* memory;
    int ranks;
    std::size_t count;
    unsigned call;
    unsigned* wrong;
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        for (unsigned i = block.thread_rank(); i < kElements; i += block.size()) {
            float expected = i < count ? 0 : kPoison;
            for (int p = 0; p < ranks && i < count; ++p) {
                expected += input_of(p, call, i);
            }
            if (memory->out[i] != expected) {
                simt::fetch_add(wrong, 1U, simt::Order::kRelaxed);
            }
        }
    }
};

CUdeviceptr address_of(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

/// The sum of `ranks` ranks.
KernelParams kernel_call(const ProtocolMemory* local, int rank, int ranks, std::size_t count,
                         const simt::Timeout& timeout) {
    return {{Reduction(ReduceOp::kSum, ranks), timeout, rank, ranks},
            {{}, address_of(local->in), address_of(local->out), count}};
}

MailboxParams scratch_call(SymmetricPointer<ProtocolMemory> memory, simt::Pack16* first_slot,
                           Epochs* epochs, int rank, int ranks, std::size_t count,
                           const simt::Timeout& timeout) {
    const KernelParams call = kernel_call(memory.of(rank), rank, ranks, count, timeout);
    return {call, {epochs, {first_slot, memory.stride}, ProtocolMemory::kPackets}, call};
}

TwoShotParams two_shot_params(SymmetricPointer<ProtocolMemory> memory, int rank, std::size_t count,
                              const simt::Timeout& timeout) {
    const ProtocolMemory* local = memory.of(rank);
    const Buffers mine{address_of(local->in), address_of(local->out)};
    return {kernel_call(local, rank, 2, count, timeout),
            {memory.member(&ProtocolMemory::rendezvous), rank, 2, {mine, mine}},
            {memory.member(&ProtocolMemory::barrier), rank, 2}};
}

}  // namespace

void launch_prepare(CUstream stream, ProtocolMemory* memory, int rank, unsigned call) {
    launch(stream, 1, 8, Prepare{memory, rank, call});
}

void launch_protocol_one_shot(CUstream stream, SymmetricPointer<ProtocolMemory> memory, int rank,
                              std::size_t count, const simt::Timeout& timeout) {
    launch(stream, 2, 8,
           OneShot<float, 2>{scratch_call(memory, memory.first->scratch[0][0],
                                          &memory.of(rank)->one_shot, rank, 2, count, timeout)});
}

void launch_protocol_sentinel(CUstream stream, SymmetricPointer<ProtocolMemory> memory, int rank,
                              std::size_t count, const simt::Timeout& timeout) {
    launch(stream, 2, 4,
           Sentinel<float, 2>{scratch_call(memory, memory.first->sentinel_banks[0][0],
                                           &memory.of(rank)->sentinel, rank, 2, count, timeout)});
}

void launch_protocol_one_pack(CUstream stream, SymmetricPointer<ProtocolMemory> memory, int rank,
                              std::size_t count, const simt::Timeout& timeout) {
    launch(stream, 2, 4,
           SentinelOfOnePack<float, 2>{scratch_call(memory, memory.first->sentinel_banks[0][0],
                                                    &memory.of(rank)->sentinel, rank, 2, count,
                                                    timeout)});
}

void launch_protocol_push(CUstream stream, SymmetricPointer<ProtocolMemory> memory, int rank,
                          std::size_t count, const simt::Timeout& timeout) {
    launch(stream, 2, 4,
           Push<float, 4>{scratch_call(memory, memory.first->push_banks[0][0][0],
                                       &memory.of(rank)->push, rank, ProtocolMemory::kPushRanks,
                                       count, timeout)});
}

void launch_protocol_two_shot(CUstream stream, SymmetricPointer<ProtocolMemory> memory, int rank,
                              std::size_t count, const simt::Timeout& timeout) {
    using Kernel = TwoShot<float, 2>;
    launch(stream, 2, 8, Kernel{two_shot_params(memory, rank, count, timeout)},
           Kernel::kSharedBytes);
}

void launch_compare(CUstream stream, const ProtocolMemory* memory, int ranks, std::size_t count,
                    unsigned call, unsigned* wrong) {
    launch(stream, 1, 8, Compare{memory, ranks, count, call, wrong});
}

}  // namespace symm
