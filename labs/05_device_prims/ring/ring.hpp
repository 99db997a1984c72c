#pragma once
/// \file
/// Collectives on a ring: rank r receives from rank r - 1 and sends to rank r + 1, modulo n ranks.
///
/// 1. Each block serves a channel, and takes its part of the elements through the ring, in turns.
/// 2. The first n steps of a turn add up. Alone, they are a ReduceScatter.
/// 3. The others distribute. Alone, they are an AllGather, which begins with the send of step n.
/// 4. Broadcast is a chain that begins at the root, Reduce one that ends there.
///
/// README.md has the table of the chunks, and the proofs. Everything is inlined into the kernel, so
/// that the objects stay in registers (docs/DESIGN.md).

#include <cstddef>
#include <cstdint>

#include "labs/05_device_prims/reduction/collective.hpp"
#include "labs/05_device_prims/ring/ring_ends.hpp"

namespace symm {

/// Parameters of one rank's kernel. Buffer sizes in elements: see ring_request.hpp.
template <class T>
struct RingParams {
    Collective collective;
    Reduction reduction;
    const T* input;
    T* output;
    std::size_t count;
    std::size_t chunk;  ///< Elements of a step: ring_chunk().
    int root;
    DirectOutputs<T> direct;
};

/// How a call is cut. A call goes around the ring in turns. In each turn every channel takes
/// `chunks` chunks, and the parts of the channels lie side by side in memory. A chunk has at most
/// `most` elements and is a multiple of `unit`, as `most` has to be; all turns have chunks of the
/// same size. All in elements.
constexpr std::size_t ring_chunk(std::size_t count, std::size_t channels, std::size_t chunks,
                                 std::size_t most, std::size_t unit) {
    const auto divided_up = [](std::size_t a, std::size_t b) { return (a + b - 1) / b; };
    const std::size_t turns = divided_up(count, channels * chunks * most);
    return divided_up(divided_up(count, channels * chunks * turns), unit) * unit;
}

/// A rank's steps in a call, on one channel.
template <class Protocol, class T>
class Ring {
public:
    /// The steps on channel `channel` of `channels`, numbers that are the same on all ranks.
    __host__ __device__ Ring(Protocol& protocol, const RingParams<T>& call, unsigned channel,
                             unsigned channels, int rank, int ranks)
        : prims_(protocol),
          call_(call),
          channel_(channel),
          channels_(channels),
          rank_(rank),
          ranks_(ranks) {}

    __host__ __device__ __forceinline__ void run() {
        if constexpr (sizeof(T) == 1) {  // copies are called with bytes, for any type
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
    /// The rank `back` places before this one.
    __host__ __device__ int before(int back) const { return (rank_ + ranks_ - back) % ranks_; }
    /// Elements from `at` on, at most `most`; none beyond the end.
    __host__ __device__ std::size_t from(std::size_t at, std::size_t most) const {
        const std::size_t left = at < call_.count ? call_.count - at : 0;
        return left < most ? left : most;
    }

    __host__ __device__ __forceinline__ void all_reduce() {
        const auto n = static_cast<std::size_t>(ranks_);
        const std::size_t chunk = call_.chunk;
        for (std::size_t first = channel_ * n * chunk; first < call_.count;
             first += channels_ * n * chunk) {
            const auto at = [&](int back) {
                return first + static_cast<std::size_t>(before(back)) * chunk;
            };
            const auto size = [&](int back) { return from(at(back), chunk); };
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

    /// Calls `use(at, size)` for each step's elements of a part of `count` elements.
    template <class Use>
    __host__ __device__ __forceinline__ void for_steps(const Use& use) {
        const std::size_t chunk = call_.chunk;
        for (std::size_t at = channel_ * chunk; at < call_.count; at += channels_ * chunk) {
            use(at, from(at, chunk));
        }
    }
    /// Where the part of the rank `back` places before this one begins.
    __host__ __device__ std::size_t part_of(int back) const {
        return static_cast<std::size_t>(before(back)) * call_.count;
    }

    __host__ __device__ __forceinline__ void reduce_scatter() {
        for_steps([&](std::size_t at, std::size_t size) {
            prims_.send(call_.input + part_of(1) + at, size);
            for (int back = 2; back < ranks_; ++back) {
                prims_.recv_reduce_send(call_.input + part_of(back) + at, size);
            }
            prims_.recv_reduce_copy(call_.input + part_of(0) + at, call_.output + at, size);
        });
    }

    __host__ __device__ __forceinline__ void all_gather() {
        for_steps([&](std::size_t at, std::size_t size) {
            prims_.copy_send(call_.input + at, call_.output + part_of(0) + at, size);
            for (int back = 1; back < ranks_ - 1; ++back) {
                prims_.recv_copy_send(call_.output + part_of(back) + at, size);
            }
            prims_.recv(call_.output + part_of(ranks_ - 1) + at, size);
        });
    }

    __host__ __device__ __forceinline__ void broadcast() {
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

    __host__ __device__ __forceinline__ void reduce() {
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
    const RingParams<T>& call_;
    unsigned channel_;
    unsigned channels_;
    int rank_;
    int ranks_;
};

}  // namespace symm
