#pragma once
/// \file
/// One shot of two ranks in rounds, whose kernel a graph may capture once and replay.
///
/// | block b of each rank                 | in whose memory | order   | why                       |
/// |--------------------------------------|-----------------|---------|---------------------------|
/// | takes the number of its next round   | its own         | plain   | only this block writes it |
/// | stores its input in bank round % 2   | the peer's      | relaxed | the flag follows          |
/// | stores the round as the bank's flag  | the peer's      | release | publishes the input       |
/// | polls until the bank's flag is equal | its own         | acquire | the peer's input follows  |
/// | keeps the number of the round        | its own         | plain   | for the next launch       |
///
/// A rank is at most one round ahead of its peer, so the bank that it writes has been read.
///
/// Model of quick all-reduce (README.md, "B.3").

#include <cstdint>

#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm::bugs_that_shipped {

/// Memory of a block, in each rank.
struct RoundMemory {
    std::uint32_t data[2];  ///< One per bank, as the flags.
    std::uint32_t flag[2];
    std::uint32_t round;  ///< The last one. Only this rank's block uses it.
};

/// A call: one element per block. `memory`, `in` and `out` have an entry per block.
struct RoundOneShot {
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const unsigned b = block.group_index();
        RoundMemory& own = memory.of(rank)[b];
        RoundMemory& peers = memory.of(1 - rank)[b];
        const std::uint32_t round = own.round + 1;
        const unsigned bank = round % 2;
        simt::store(&peers.data[bank], in[b], simt::Order::kRelaxed);
        simt::store(&peers.flag[bank], round, simt::Order::kRelease);
        simt::Waiter waiter(timeout);
        if (waiter.until({simt::Wait::kSignal, rank, 1 - rank, round}, [&](std::uint64_t& seen) {
                seen = simt::load(&own.flag[bank], simt::Order::kAcquire);
                return seen == round;
            })) {
            out[b] = in[b] + simt::load(&own.data[bank], simt::Order::kRelaxed);
            own.round = round;
        }
    }

    SymmetricPointer<RoundMemory> memory;
    const std::uint32_t* in;
    std::uint32_t* out;
    simt::Timeout timeout;
    int rank;
};

/// The host's side of a rank.
class RoundCaller {
public:
    explicit RoundCaller(const RoundOneShot& kernel) : kernel_(kernel) {}

    /// Called once per call, or once by a capture: the graph launches this kernel at each replay.
    RoundOneShot next_kernel() { return kernel_; }

private:
    RoundOneShot kernel_;
};

}  // namespace symm::bugs_that_shipped
