#pragma once
/// \file
/// AllToAll: part p of each rank's input goes to rank p. The parts have equal sizes, or each rank
/// has a count for each peer, which only it knows, and which travels too. ALL_TO_ALL.md has the
/// proofs.
///
/// - Small parts: threads send the count and packets of part p to each peer p through a mailbox,
///   wait for the peers' counts, then for as many packets, and store their data.
/// - Large parts: the ranks exchange counts, meet (rendezvous.hpp), store part p into the output of
///   each peer p, in turns (turns.hpp), copy their own part meanwhile, and pass a barrier.
///
/// Source: ours. NCCL's contrib/custom_algos/alltoall has one on its device API.

#include <symm/kernel.hpp>

namespace symm::collectives {

/// Parameters of both kernels. `in`, `out` and `count`, the elements of a part or the most of them,
/// are in MailboxParams; so is `stride`, the bytes from one part to the next.
struct AllToAllParams : symm::MailboxParams {
    unsigned element;             ///< Bytes of an element.
    const std::uint32_t* counts;  ///< Elements for each rank; null: `count` for each.
    std::uint32_t* received;      ///< Becomes the elements from each rank, if there are counts.

    /// Bytes of a part with so many elements. More than `count` do not fit, so the rest stays.
    __host__ __device__ std::size_t bytes_of(std::uint64_t elements) const {
        return (elements < count ? elements : count) * element;
    }
    __host__ __device__ std::uint64_t count_for(int p) const {
        return counts != nullptr ? counts[p] : count;
    }
    __host__ __device__ char* part(CUdeviceptr of, int p) const {
        return reinterpret_cast<char*>(of) + static_cast<std::size_t>(p) * stride;
    }

    /// Waits for the peers' counts: `arriving[p]` becomes the bytes that come from rank p. A thread
    /// that `stores` them passes the counts to the caller. False if the wait gave up.
    template <int kMost>
    __host__ __device__ bool receive_counts(symm::MailboxSession<symm::Packets, kMost>& mailbox,
                                            bool stores, unsigned (&arriving)[kMost]) const {
        symm::simt::Pack8 elements[kMost];
        symm::fill_with(elements, symm::simt::Pack8{count_for(rank)});
        if (counts != nullptr && !mailbox.receive(peers(), 0, elements)) {
            return false;
        }
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            arriving[p] = static_cast<unsigned>(bytes_of(elements[p].bits));
            if (counts != nullptr && stores && p < ranks) {
                received[p] = static_cast<std::uint32_t>(elements[p].bits);
            }
        }
        return true;
    }
};

/// Pack `i` of `bytes` bytes.
template <class Pack>
__host__ __device__ Pack load_bytes(const char* from, std::size_t bytes, std::size_t i) {
    return symm::load_elements<Pack>(from + i * sizeof(Pack), bytes - i * sizeof(Pack));
}
template <class Pack>
__host__ __device__ void store_bytes(char* to, std::size_t bytes, std::size_t i, const Pack& pack) {
    symm::store_elements(to + i * sizeof(Pack), pack, bytes - i * sizeof(Pack));
}
template <class Pack>
__host__ __device__ std::size_t packs_in(std::size_t bytes) {
    return (bytes + sizeof(Pack) - 1) / sizeof(Pack);
}

/// Small parts, for at most kMost ranks.
template <int kMost>
struct AllToAllPackets : AllToAllParams {
    using Pack = symm::simt::Pack8;
    static constexpr unsigned kMaxThreads = 512;

    __host__ __device__ void operator()(const symm::simt::ThreadBlock& block) const {
        Session mailbox(block, *this);
        const std::uint32_t epoch = epochs->next(block);
        const bool first = block.grid_rank() == 0;
        if (!mailbox.gave_up()) {
            send_all(block, mailbox);
            unsigned arriving[kMost];
            if (receive_counts(mailbox, first, arriving) && receive_all(block, mailbox, arriving) &&
                first) {
                clear_unused(mailbox, arriving, epoch / 2 & (per_sender - 1));
            }
        }
        mailbox.end(block, per_sender);  // clears nothing: each peer has used other slots
    }

private:
    using Session = symm::MailboxSession<symm::Packets, kMost>;

    /// The slot of a part's first packet.
    __host__ __device__ std::size_t first_slot() const { return counts != nullptr ? 1 : 0; }

    __host__ __device__ void send_all(const symm::simt::ThreadBlock& block,
                                      const Session& mailbox) const {
        for (int step = 1; step < ranks; ++step) {
            const int p = peer(step);
            const std::uint64_t elements = count_for(p);
            if (counts != nullptr && block.grid_rank() == 0) {
                mailbox.send(p, 0, Pack{elements});
            }
            const std::size_t bytes = bytes_of(elements);
            const char* const from = part(in, p);
            for (std::size_t i = block.grid_rank(); i < packs_in<Pack>(bytes);
                 i += block.grid_size()) {
                mailbox.send(p, first_slot() + i, load_bytes<Pack>(from, bytes, i));
            }
        }
    }

    __host__ __device__ bool receive_all(const symm::simt::ThreadBlock& block, Session& mailbox,
                                         const unsigned (&arriving)[kMost]) const {
        const std::size_t own = bytes_of(count_for(rank));
        for (std::size_t i = block.grid_rank();; i += block.grid_size()) {
            unsigned with_data = 0;  // a bit for each rank that has a packet i
            SYMM_UNROLL
            for (int p = 0; p < kMost; ++p) {
                if (p < ranks && i < packs_in<Pack>(arriving[p])) {
                    with_data |= 1U << p;
                }
            }
            if (with_data == 0) {
                return true;
            }
            Pack data[kMost];
            const bool has_own = (with_data >> rank & 1U) != 0;
            symm::fill_with(data, has_own ? load_bytes<Pack>(part(in, rank), own, i) : Pack{});
            if (!mailbox.receive(with_data & peers(), first_slot() + i, data)) {
                return false;
            }
            SYMM_UNROLL
            for (int p = 0; p < kMost; ++p) {
                if ((with_data >> p & 1U) != 0) {
                    store_bytes(part(out, p), arriving[p], i, data[p]);
                }
            }
        }
    }

    /// Clears slot `i` of each peer, unless its packets of this call lie there.
    __host__ __device__ void clear_unused(const Session& mailbox, const unsigned (&arriving)[kMost],
                                          std::size_t i) const {
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            if ((peers() >> p & 1U) != 0 && i >= first_slot() + packs_in<Pack>(arriving[p])) {
                mailbox.clear(p, i);
            }
        }
    }
};

/// Parameters of the kernel for large parts.
struct AllToAllWindowsParams : AllToAllParams {
    symm::Rendezvous rendezvous;
    symm::BarrierView barrier;
    symm::SymmetricPointer<symm::TurnsMemory> turns;
    bool in_turns;  ///< Parts are so large that a turn costs less than it gains. On all ranks.
};

/// Large parts, for at most kMost ranks. Only the counts go through the mailbox.
template <int kMost>
struct AllToAllWindows : AllToAllWindowsParams {
    using Pack = symm::simt::Pack16;
    static constexpr unsigned kMaxThreads = 512;
    static constexpr unsigned kSharedBytes = kMost * sizeof(symm::Buffers);

    __host__ __device__ void operator()(const symm::simt::ThreadBlock& block) const {
        symm::MailboxSession<symm::Packets, kMost> mailbox(block, *this);
        bool known = true;
        if (counts != nullptr && block.grid_rank() == 0) {
            for (int step = 1; step < ranks && !mailbox.gave_up(); ++step) {
                mailbox.send(peer(step), 0, {counts[peer(step)]});
            }
            unsigned arriving[kMost];
            known = receive_counts(mailbox, true, arriving);
        }
        auto* const all = block.shared<symm::Buffers>();
        // A thread that gave up over the counts may wait for nobody in the rendezvous.
        if (rendezvous.meet(block, timeout, all) && symm::AbortBarrier(block).sync(known) &&
            send_parts(block, all)) {
            symm::Barrier end(block, barrier, timeout);
            if (end.arrive_and_wait()) {
                end.store_epoch();
            }
        }
        if (counts != nullptr) {
            mailbox.end(block, 1);
        }
    }

private:
    /// Returns false, on all threads of the block, if one of them gave up.
    __host__ __device__ bool send_parts(const symm::simt::ThreadBlock& block,
                                        const symm::Buffers* all) const {
        const int steps = ranks > 1 ? ranks - 1 : 1;
        symm::Turns now(block, turns, rank, ranks, steps, in_turns);
        symm::AbortBarrier together(block);
        symm::simt::Waiter waiter(timeout);
        const std::size_t own = bytes_of(count_for(rank));
        const std::size_t share = (packs_in<Pack>(own) + steps - 1) / steps;
        for (int step = 1; step <= steps; ++step, now.next()) {
            if (now.waits() && !together.sync(block.thread_rank() != 0 || now.wait(waiter))) {
                return false;
            }
            const int p = peer(step);
            const std::size_t bytes = bytes_of(count_for(p));
            const char* const from = part(in, p);
            char* const to = part(all[p].out, rank);
            const std::size_t packs = packs_in<Pack>(bytes);
            for (std::size_t i = block.grid_rank(); i < packs || i < share;
                 i += block.grid_size()) {
                if (i < packs) {
                    store_bytes(to, bytes, i, load_bytes<Pack>(from, bytes, i));
                }
                const std::size_t mine = share * (step - 1) + i;
                if (i < share && mine < packs_in<Pack>(own)) {
                    store_bytes(part(out, rank), own, mine,
                                load_bytes<Pack>(part(in, rank), own, mine));
                }
            }
            if (block.thread_rank() == block.size() - 1) {
                now.end();
            }
        }
        return true;
    }
};

}  // namespace symm::collectives
