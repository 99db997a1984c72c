#include "labs/06_allreduce/tests/protocol_kernels.hpp"

#include "common/cuda/launch.hpp"
#include "labs/06_allreduce/two_shot.hpp"

namespace symm {
namespace {

constexpr unsigned kElements = ProtocolMemory::kElements;
constexpr float kPoison = -1;

/// Unique to rank, call and index, and its sums are exact.
__host__ __device__ float input_of(int rank, unsigned call, unsigned i) {
    return static_cast<float>((call % 1024 * kElements + i) * 2 + static_cast<unsigned>(rank));
}

struct Reset {
    ProtocolMemory* memory;
    std::uint32_t epoch;
    std::uint32_t stale;
    __host__ __device__ void operator()(const simt::ThreadBlock&) const {
        memory->barrier = BarrierMemory{};
        memory->copy = CopyMemory{};
        for (std::uint32_t& one : memory->one_shot.epochs) {
            one = epoch;
        }
        for (std::uint32_t& one : memory->sentinel.epochs) {
            one = epoch;
        }
        for (auto& bank : memory->sentinel_banks) {
            for (simt::Pack16& pack : bank[0]) {
                simt::store_relaxed(&pack, simt::Pack16{{kSentinel, kSentinel}});
            }
        }
        for (auto& bank : memory->scratch) {
            for (auto& sender : bank) {
                for (simt::Pack16& packet : sender) {
                    write_packet(&packet, 0x12345678, stale);
                }
            }
        }
    }
};

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
    std::size_t count;
    unsigned call;
    unsigned* wrong;
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        for (unsigned i = block.thread_rank(); i < kElements; i += block.size()) {
            const float expected =
                i < count ? input_of(0, call, i) + input_of(1, call, i) : kPoison;
            if (memory->out[i] != expected) {
                simt::fetch_add(wrong, 1U, simt::Order::kRelaxed);
            }
        }
    }
};

CUdeviceptr address_of(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

}  // namespace

void launch_reset(CUstream stream, ProtocolMemory* memory, std::uint32_t epoch,
                  std::uint32_t stale) {
    launch(stream, 1, 1, Reset{memory, epoch, stale});
}

void launch_prepare(CUstream stream, ProtocolMemory* memory, int rank, unsigned call) {
    launch(stream, 1, 8, Prepare{memory, rank, call});
}

void launch_protocol_one_shot(CUstream stream, ProtocolMemory* first, std::size_t stride, int rank,
                              std::size_t count, const simt::Timeout& timeout) {
    auto* local = reinterpret_cast<ProtocolMemory*>(reinterpret_cast<char*>(first) +
                                                    static_cast<std::size_t>(rank) * stride);
    launch(
        stream, 2, 8,
        OneShot<float, 2>{{address_of(local->in), address_of(local->out), count,
                           Reduction(ReduceOp::kSum, 2), &local->one_shot, &first->scratch[0][0][0],
                           stride, ProtocolMemory::kPackets, timeout, rank, 2}});
}

void launch_protocol_sentinel(CUstream stream, ProtocolMemory* first, std::size_t stride, int rank,
                              std::size_t count, const simt::Timeout& timeout) {
    auto* local = reinterpret_cast<ProtocolMemory*>(reinterpret_cast<char*>(first) +
                                                    static_cast<std::size_t>(rank) * stride);
    launch(stream, 2, 4,
           Sentinel<float, 2>{{address_of(local->in), address_of(local->out), count,
                               Reduction(ReduceOp::kSum, 2), &local->sentinel,
                               &first->sentinel_banks[0][0][0], stride, ProtocolMemory::kPackets,
                               timeout, rank, 2}});
}

void launch_protocol_two_shot(CUstream stream, ProtocolMemory* first, std::size_t stride, int rank,
                              std::size_t count, const simt::Timeout& timeout) {
    launch(stream, 2, 8,
           TwoShot<float, 2>{{{address_of(first->in), stride},
                              {address_of(first->out), stride},
                              count,
                              Reduction(ReduceOp::kSum, 2),
                              {&first->barrier, stride, rank, 2},
                              timeout}});
}

void launch_compare(CUstream stream, const ProtocolMemory* memory, std::size_t count, unsigned call,
                    unsigned* wrong) {
    launch(stream, 1, 8, Compare{memory, count, call, wrong});
}

}  // namespace symm
