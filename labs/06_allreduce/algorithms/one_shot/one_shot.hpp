#pragma once
/// \file
/// AllReduce in one shot: every rank sends all of its input to every other, in packets, through a
/// mailbox (mailbox.hpp), and adds up the packets that arrive. Thread i of rank r:
///
/// | does                               | to what                  | order   | why                   |
/// |------------------------------------|--------------------------|---------|-----------------------|
/// | stores packet i                    | slot i of all peers      | relaxed | data and flag are one |
/// | polls until all peers' packets are there | its own slots i    | relaxed | as above              |
/// | adds up, in the order of the ranks | `out[i]`                 | plain   | for this rank's stream only; the same bits on all ranks |
/// | ends the launch                    | unused slots, epochs     |         | see mailbox.hpp       |

#include <cstddef>

#include "labs/06_allreduce/algorithms/mailbox/packets.hpp"

namespace symm {

/// The kernel, for at most kMost ranks: room for their data in registers.
template <class T, int kMost>
struct OneShot : MailboxParams {
    using Format = Packets;
    static constexpr std::size_t kPerPacket = kPerPack<T, simt::Pack8>;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        MailboxSession<Format, kMost> mailbox(block, *this);
        const std::size_t packets = (count + kPerPacket - 1) / kPerPacket;
        // Once a wait has given up, in this call or an earlier one, sends nothing but still ends.
        for (std::size_t i = block.grid_rank(); i < packets && !mailbox.gave_up();
             i += block.grid_size()) {
            const std::size_t at = i * kPerPacket;
            const auto own =
                load_elements<simt::Pack8>(reinterpret_cast<const T*>(in) + at, count - at);
            for (int step = 1; step < ranks; ++step) {
                mailbox.send(peer(step), i, own);
            }
            simt::Pack8 data[kMost];
            fill_with(data, own);
            if (!mailbox.receive(peers(), i, data)) {
                break;
            }
            store_elements(reinterpret_cast<T*>(out) + at, reduction.reduce<T>(data, ranks),
                           count - at);
        }
        mailbox.end(block, packets);
    }
};

}  // namespace symm
