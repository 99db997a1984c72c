#pragma once
/// \file
/// Collectives on a ring: rank r receives from rank r - 1 and sends to rank r + 1, modulo n ranks.
///
/// Each block serves a channel, and takes its part of the elements through the ring. Where every
/// rank has data of its own (AllReduce, ReduceScatter, AllGather), n chunks are on their way at the
/// same time, one per rank and step. What rank r does with which chunk, for n = 4:
///
///     AllReduce         rank 0        rank 1        rank 2        rank 3
///     send                 3             0             1             2
///     recv_reduce_send     2             3             0             1
///     recv_reduce_send     1             2             3             0
///     recv_reduce_copy_    0             1             2             3      complete
///       direct_send
///     direct_recv_copy_    3             0             1             2
///       direct_send
///     direct_recv_copy_    2             3             0             1
///       direct_send
///     direct_recv          1             2             3             0
///
/// The first n steps add up, the others distribute. Alone, the first n are a ReduceScatter, the
/// rest an AllGather. Broadcast and Reduce are chains, which begin and end at the root.
///
/// - No deadlock. Order all ranks' steps by their number in the call. The step with the lowest
///   number that is not done never waits for long: what it receives was sent in a step with a lower
///   number, and the slot that it needs was freed eight steps of its sender earlier.
/// - The number of steps depends on numbers that all ranks know alike: count, ranks, slots.
/// - The direct sends of AllReduce store into the next rank's output. That rank is ready: the
///   complete chunk has its contribution in it, so its kernel has begun, and it has read this chunk
///   of its input, which may be the same memory. Neither holds for AllGather and Broadcast.
///
/// Source: NCCL's src/device/all_reduce.h, reduce_scatter.h, all_gather.h, broadcast.h, reduce.h.

#include <cstddef>
#include <cstdint>

#include "labs/05_device_prims/primitives.hpp"

namespace symm {

enum class Collective : std::uint32_t {
    kAllReduce,
    kReduceScatter,
    kAllGather,
    kBroadcast,
    kReduce
};

/// One call, as a kernel of one rank sees it. `count` is the elements of an input or an output: of
/// each rank's part where the ranks have parts.
///
/// | collective    | input         | output        |
/// |---------------|---------------|---------------|
/// | AllReduce     | count         | count         |
/// | ReduceScatter | ranks * count | count         |
/// | AllGather     | count         | ranks * count |
/// | Broadcast     | count, read at the root | count |
/// | Reduce        | count         | count, written at the root |
template <class T>
struct RingCall {
    Collective collective;
    Reduction reduction;
    const T* input;
    T* output;
    std::size_t count;
    int root;
    DirectOutputs<T> direct;
};

/// Elements `begin` to `end` of a call.
struct Span {
    std::size_t begin;
    std::size_t end;

    /// Part `which` of `parts`, in multiples of `unit` elements.
    __host__ __device__ static Span part(std::size_t count, std::size_t which, std::size_t parts,
                                         std::size_t unit) {
        const std::size_t units = (count + unit - 1) / unit;
        const std::size_t begin = units * which / parts * unit;
        const std::size_t end = units * (which + 1) / parts * unit;
        return {begin < count ? begin : count, end < count ? end : count};
    }
    /// Elements from `at` on, at most `most`; none beyond the end.
    __host__ __device__ std::size_t from(std::size_t at, std::size_t most) const {
        const std::size_t left = at < end ? end - at : 0;
        return left < most ? left : most;
    }
};

/// A rank's way through a call, on one channel.
template <class Protocol, class T>
class Ring {
public:
    /// `part` is what this channel takes of `call`: the same on all ranks.
    __host__ __device__ Ring(Protocol& protocol, const RingCall<T>& call, const Span& part,
                             int rank, int ranks)
        : prims_(protocol), call_(call), part_(part), rank_(rank), ranks_(ranks) {}

    __host__ __device__ void run() {
        if constexpr (sizeof(T) == 1) {  // what only copies is called with bytes, whatever the type
            if (call_.collective == Collective::kAllGather) {
                return all_gather();
            }
            if (call_.collective == Collective::kBroadcast) {
                return broadcast();
            }
        }
        if (call_.collective == Collective::kAllReduce) {
            all_reduce();
        } else if (call_.collective == Collective::kReduceScatter) {
            reduce_scatter();
        } else if (call_.collective == Collective::kReduce) {
            reduce();
        }
    }

private:
    static constexpr std::size_t kUnit = 128 / sizeof(T);  // chunks begin at cache lines

    /// The rank `back` places before this one.
    __host__ __device__ int before(int back) const { return (rank_ + ranks_ - back) % ranks_; }

    __host__ __device__ void all_reduce() {
        const auto n = static_cast<std::size_t>(ranks_);
        std::size_t chunk = 0;
        for (std::size_t first = part_.begin; first < part_.end; first += n * chunk) {
            chunk = ((part_.end - first + n - 1) / n + kUnit - 1) / kUnit * kUnit;
            chunk = chunk < prims_.step_elements() ? chunk : prims_.step_elements();
            const auto at = [&](int back) {
                return first + static_cast<std::size_t>(before(back)) * chunk;
            };
            const auto size = [&](int back) { return part_.from(at(back), chunk); };
            prims_.send(call_.input + at(1), size(1));
            for (int back = 2; back < ranks_; ++back) {
                prims_.recv_reduce_send(call_.input + at(back), size(back));
            }
            prims_.recv_reduce_copy_direct_send(call_.input + at(0), call_.output + at(0), size(0));
            for (int back = 1; back < ranks_ - 1; ++back) {
                prims_.direct_recv_copy_direct_send(call_.output + at(back), size(back));
            }
            prims_.direct_recv(call_.output + at(ranks_ - 1), size(ranks_ - 1));
        }
    }

    /// Calls `use(at, size)` for each step's elements of a part that is as large as `count`.
    template <class Use>
    __host__ __device__ void for_steps(const Use& use) {
        const std::size_t most = prims_.step_elements();
        for (std::size_t at = part_.begin; at < part_.end; at += most) {
            use(at, part_.from(at, most));
        }
    }
    /// Where the part of the rank `back` places before this one begins.
    __host__ __device__ std::size_t part_of(int back) const {
        return static_cast<std::size_t>(before(back)) * call_.count;
    }

    __host__ __device__ void reduce_scatter() {
        for_steps([&](std::size_t at, std::size_t size) {
            prims_.send(call_.input + part_of(1) + at, size);
            for (int back = 2; back < ranks_; ++back) {
                prims_.recv_reduce_send(call_.input + part_of(back) + at, size);
            }
            prims_.recv_reduce_copy(call_.input + part_of(0) + at, call_.output + at, size);
        });
    }

    __host__ __device__ void all_gather() {
        for_steps([&](std::size_t at, std::size_t size) {
            prims_.copy_send(call_.input + at, call_.output + part_of(0) + at, size);
            for (int back = 1; back < ranks_ - 1; ++back) {
                prims_.recv_copy_send(call_.output + part_of(back) + at, size);
            }
            prims_.recv(call_.output + part_of(ranks_ - 1) + at, size);
        });
    }

    __host__ __device__ void broadcast() {
        for_steps([&](std::size_t at, std::size_t size) {
            if (rank_ == call_.root) {
                prims_.copy_send(call_.input + at, call_.output + at, size);
            } else if (before(ranks_ - 1) == call_.root) {  // the next rank is the root
                prims_.recv(call_.output + at, size);
            } else {
                prims_.recv_copy_send(call_.output + at, size);
            }
        });
    }

    __host__ __device__ void reduce() {
        for_steps([&](std::size_t at, std::size_t size) {
            if (before(1) == call_.root) {
                prims_.send(call_.input + at, size);
            } else if (rank_ == call_.root) {
                prims_.recv_reduce_copy(call_.input + at, call_.output + at, size);
            } else {
                prims_.recv_reduce_send(call_.input + at, size);
            }
        });
    }

    Primitives<Protocol, T> prims_;
    const RingCall<T>& call_;
    Span part_;
    int rank_;
    int ranks_;
};

}  // namespace symm
