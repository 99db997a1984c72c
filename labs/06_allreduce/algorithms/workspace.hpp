#pragma once
/// \file
/// A rank's memory for calls, as algorithms see it. All of it is symmetric.
///
///     | barrier | one shot's | sentinel's | push's | two shots' | ...
///
/// Each part, and the data in it, starts on a cache line: with scratch memory in the middle of one,
/// 4M took 16.1 us instead of 15.0 on two H200s.

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

#include "common/ranks/rank.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/06_allreduce/algorithms/algorithm.hpp"
#include "labs/06_allreduce/algorithms/peer_slots/slot_memory.hpp"

namespace symm {

class Copy;
class MulticastRange;

inline constexpr std::size_t kCacheLine = 128;

class Workspace {
public:
    /// Collective. The rank must outlive it.
    explicit Workspace(Rank& rank);
    ~Workspace();
    /// Bytes on each rank, before any algorithm prepares more.
    static std::size_t bytes(int ranks);

    /// The memory that AlgorithmKernels::memory asked for.
    template <class T>
    SymmetricPointer<T> at(Algorithm algorithm) const {
        return memory_.pointer<T>(offsets_.at(static_cast<std::size_t>(algorithm)));
    }
    /// Blocks of all ranks meet here: of one call at a time.
    BarrierView barrier() const {
        return {memory_.pointer<BarrierMemory>(), rank.rank(), rank.size()};
    }

    /// Makes the memory of peer slots, unless that is done. Collective.
    void make_slots();

    Rank& rank;
    /// Throws if a call can no longer succeed.
    std::function<void()> throw_if_failed = [] {};
    /// Made by the first algorithms that need them.
    std::unique_ptr<SlotMemory> slots;
    std::shared_ptr<Copy> copy;
    std::unique_ptr<MulticastRange> multicast;

private:
    using Offsets =
        std::array<std::size_t, kAlgorithms + kMostLoaded + 2>;  ///< The last one: the end.
    static Offsets offsets(int ranks);

    Offsets offsets_;
    SymmetricRange memory_;
};

}  // namespace symm
