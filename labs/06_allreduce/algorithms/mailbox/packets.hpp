#pragma once
/// \file
/// A mailbox of packets (ll_packet.hpp): eight bytes of data, and two flags that are the epoch.
///
/// No old flag equals a later epoch, which wraps: a call clears one of each peer's `per_sender`
/// slots, in turn, unless it has just used it (MailboxSession::clear_unused). With two banks, a
/// slot's turn comes once in 2 x `per_sender` calls (slot 0 misses its turn at the wrap, which
/// skips epochs 0 and 1). `per_sender` is a power of two.

#include <cstdint>

#include "labs/05_device_prims/ll_packet.hpp"
#include "labs/06_allreduce/algorithms/mailbox/mailbox.hpp"

namespace symm {

struct Packets {
    using Data = simt::Pack8;
    using Loaded = Packet;
    static constexpr bool kHasFlags = true;

    __host__ __device__ static void store(simt::Pack16* slot, const Data& data,
                                          std::uint32_t epoch) {
        write_packet(reinterpret_cast<Packet*>(slot), data.bits, epoch);
    }
    __host__ __device__ static Packet load(const simt::Pack16* slot) {
        return load_packet(reinterpret_cast<const Packet*>(slot));
    }
    __host__ __device__ static bool has_arrived(const Packet& packet, std::uint32_t epoch) {
        return packet.has_flag(epoch);
    }
    __host__ __device__ static Data data_of(const Packet& packet) { return {packet.data()}; }
    __host__ __device__ static void clear(simt::Pack16* slot) { store(slot, {0}, 0); }
};

}  // namespace symm
