#pragma once
/// \file
/// Rung 3, packets: data carries its own flag, so no barrier has to say that it is there. A packet
/// is two floats and twice the call's number, in one store. The price: twice as many bytes.
///
/// The real one (one_shot/one_shot.hpp) polls all peers' packets at once, sends itself nothing, and
/// clears slots, since after 2^32 calls an old flag would pass for a new one (mailbox/packets.hpp).

#include "labs/05_device_prims/ll_packet.hpp"
#include "labs/06_allreduce/algorithms/ladder/rung.hpp"

namespace symm::ladder {

struct ByPackets : Rung {
    static constexpr std::size_t kInPacket = kPerPack<float, simt::Pack8>;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const std::uint32_t epoch = epochs->next(block);
        simt::Waiter waiter(timeout);
        for (std::size_t i = block.grid_rank(); i * kInPacket < count && !waiter.gave_up();
             i += block.grid_size()) {
            const std::size_t at = i * kInPacket;
            const auto own = load_elements<simt::Pack8>(in.of(rank) + at, count - at);
            for (int p = 0; p < ranks; ++p) {
                write_packet(packet(p, rank, epoch, i), own.bits, epoch);
            }
            simt::Pack8 sum{};
            for (int p = 0; p < ranks && !waiter.gave_up(); ++p) {
                simt::Pack8 next{};
                read_packet(waiter, packet(rank, p, epoch, i),
                            {simt::Wait::kPacket, rank, p, epoch}, next.bits);
                add(sum, p, next);
            }
            if (!waiter.gave_up()) {
                store_elements(out.of(rank) + at, sum, count - at);
            }
        }
        epochs->store(block, epoch);
    }

    __host__ __device__ Packet* packet(int receiver, int sender, std::uint32_t epoch,
                                       std::size_t i) const {
        return reinterpret_cast<Packet*>(slot(receiver, sender, epoch, i));
    }
};

}  // namespace symm::ladder
