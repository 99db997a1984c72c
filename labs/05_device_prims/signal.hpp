#pragma once
/// \file
/// The smallest message: one GPU stores a number, another polls until it sees it. Values only grow,
/// and the comparison allows them to wrap, so nothing is ever cleared.
///
/// | who          | does                      | to what               | order   | why                              |
/// |--------------|---------------------------|-----------------------|---------|----------------------------------|
/// | the sender   | writes its data           | the receiver's memory | plain   | no thread reads it yet           |
/// | the sender   | stores `value`            | the receiver's flag   | release | a thread that sees the flag can see the data |
/// | the receiver | polls until it is reached | its own flag          | acquire | the data is read after the flag  |
///
/// Source: NCCL's waitPeer and postPeer in src/device/prims_simple.h; MSCCL++'s "relaxed signal".

#include <cstdint>

#include "common/simt/atomic.hpp"
#include "common/simt/waiter.hpp"

namespace symm {

/// True when a counter that only grows, and may wrap, has reached `expected` or more. The
/// difference as a signed number is right while the two are less than 2^31 apart.
__host__ __device__ inline bool has_reached(std::uint32_t seen, std::uint32_t expected) {
    return static_cast<std::int32_t>(seen - expected) >= 0;
}

/// Stores `value` for the thread that polls `flag`. With kRelease, this thread's earlier writes,
/// and others' writes before a sync with it, are visible to a thread whose kAcquire load reads the
/// value, or a later released one; with kRelaxed only the value arrives, sooner.
template <simt::Order kOrder = simt::Order::kRelease>
__host__ __device__ void signal(std::uint32_t* flag, std::uint32_t value) {
    simt::store(flag, value, kOrder);
}

/// Polls `flag` until it has reached `waiting.expected`. With kAcquire, what the sender wrote
/// before its signal may be read afterwards. Returns false when the wait gave up (see waiter.hpp).
///
/// Every poll is an acquire load. The other way, relaxed polls and one fence after them, made a
/// barrier of four H200s 1.1 us slower.
template <simt::Order kOrder = simt::Order::kAcquire>
__host__ __device__ bool wait_signal(simt::Waiter& waiter, const std::uint32_t* flag,
                                     const simt::Waiting& waiting) {
    return waiter.until(waiting, [&](std::uint64_t& seen) {
        const std::uint32_t value = simt::load(flag, kOrder);
        seen = value;
        return has_reached(value, static_cast<std::uint32_t>(waiting.expected));
    });
}

}  // namespace symm
