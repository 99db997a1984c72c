#pragma once
/// \file
/// A mailbox without flags, of two ranks and three stages: the data is the flag.
///
/// | the kernel of call e             | in whose memory | why                         |
/// |----------------------------------|-----------------|-----------------------------|
/// | stores its input in stage e % 3  | the peer's      | the stage is empty          |
/// | polls until that stage is filled | its own         | the peer's input arrives    |
/// | empties a stage                  | its own         | a later call of the peer's  |
///
/// All accesses are relaxed. The end of a kernel orders them: a peer's call e + 2 knows what this
/// rank did in call e, since it needs data of call e + 1.
///
/// Model of vLLM's mailboxes for several nodes, without their multicast (README.md, "B.5").

#include <cstdint>

#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm::bugs_that_shipped {

constexpr std::uint32_t kStages = 3;
constexpr std::uint32_t kEmpty = 0x80000000;  ///< The bits of -0.0, which no input has.

/// Memory of a rank: a word per stage, each kEmpty at first.
struct Stages {
    std::uint32_t word[kStages];
};

/// Call `epoch` of a thread.
struct StagedMailbox {
    __host__ __device__ void operator()(std::uint32_t epoch, std::uint32_t in,
                                        std::uint32_t* out) const {
        using simt::Order;
        Stages* const own = memory.of(rank);
        std::uint32_t* const arriving = &own->word[epoch % kStages];
        simt::store(&memory.of(1 - rank)->word[epoch % kStages], in, Order::kRelaxed);
        std::uint32_t peers = kEmpty;
        simt::Waiter waiter(timeout);
        if (!waiter.until({simt::Wait::kPacket, rank, 1 - rank, epoch}, [&](std::uint64_t& seen) {
                seen = peers = simt::load(arriving, Order::kRelaxed);
                return peers != kEmpty;
            })) {
            return;
        }
        simt::store(&own->word[(epoch + 2) % kStages], kEmpty, Order::kRelaxed);
        *out = in + peers;
    }

    SymmetricPointer<Stages> memory;
    simt::Timeout timeout;
    int rank;
};

}  // namespace symm::bugs_that_shipped
