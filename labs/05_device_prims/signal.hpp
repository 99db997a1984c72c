#pragma once
/// \file
/// The smallest conversation: one GPU stores a number, another polls until it sees it.
///
/// | who          | does                      | to what               | order   | why               |
/// |--------------|---------------------------|-----------------------|---------|-------------------|
/// | the sender   | writes its data           | the receiver's memory | plain   | nobody looks yet  |
/// | the sender   | stores `value`            | the receiver's flag   | release | the data is seen before the flag |
/// | the receiver | polls until it is reached | its own flag          | acquire | the data is read after the flag |
///
/// The flag lies with the receiver: a store crosses the link once, while polling a remote flag
/// would cross it twice for each look. Numbers only grow, and are compared so that they may wrap;
/// so a sender that is already one ahead does not confuse a receiver that has not looked yet, and
/// nothing is ever cleared.
///
/// Source: NCCL's src/device/prims_simple.h (waitPeer, postPeer); MSCCL++'s "signal" and "relaxed
/// signal".

#include <cstdint>

#include "common/simt/atomic.hpp"
#include "common/simt/timeout.hpp"

namespace symm {

/// True when a counter that only grows, and may wrap, has come to `expected` or beyond.
__host__ __device__ inline bool has_reached(std::uint32_t seen, std::uint32_t expected) {
    return static_cast<std::int32_t>(seen - expected) >= 0;
}

/// Tells `value` to whoever polls `flag`, and with it all that this thread wrote or knew of before.
__host__ __device__ inline void signal(std::uint32_t* flag, std::uint32_t value) {
    simt::store(flag, value, simt::Order::kRelease);
}

/// Tells `value` alone: half the latency, for where no data rides on it.
__host__ __device__ inline void signal_relaxed(std::uint32_t* flag, std::uint32_t value) {
    simt::store(flag, value, simt::Order::kRelaxed);
}

/// Polls `flag` until it has reached `waiting.expected`; what the sender wrote before its signal
/// may be read after. False when the wait gave up (see timeout.hpp).
///
/// Each look acquires: that is the pair of the release above, and on H200s quicker than relaxed looks
/// with a fence behind them, by 1.1 us of a barrier of four GPUs.
template <simt::Order kOrder = simt::Order::kAcquire>
__host__ __device__ bool wait_signal(const simt::Timeout& timeout, const std::uint32_t* flag,
                                     const simt::Waiting& waiting) {
    return timeout.until(waiting, [&](std::uint64_t& seen) {
        const std::uint32_t value = simt::load(flag, kOrder);
        seen = value;
        return has_reached(value, static_cast<std::uint32_t>(waiting.expected));
    });
}

/// Waits for what signal_relaxed tells: the number, and nothing that was written before it.
__host__ __device__ inline bool wait_signal_relaxed(const simt::Timeout& timeout,
                                                    const std::uint32_t* flag,
                                                    const simt::Waiting& waiting) {
    return wait_signal<simt::Order::kRelaxed>(timeout, flag, waiting);
}

}  // namespace symm
