#pragma once
/// \file
/// AllReduce, residual and RMSNorm in one kernel (RMS_NORM.md has the tables and the proofs). A
/// block does a row of `hidden` elements at a time:
///
///     residual += sum over ranks of x;  out = residual / rms(residual) * weight
///
/// - A few rows: each rank sends all of x to every other through a mailbox, and does all rows.
/// - More rows are read in place: the ranks meet, load x from all ranks, and pass a barrier. With
///   two shots each rank adds up its share of the rows, and stores it into the residuals of all
///   ranks.

#include <symm/kernel.hpp>

#include "rms_norm_row.hpp"

namespace symm::collectives {

/// One shot through the mailbox, for at most kMost ranks: what a thread does with a pack.
template <class T, int kMost, bool kPlain>
struct MailedRows : RmsNormParams {
    static constexpr unsigned kMaxThreads = kThreadsFor<kMost>;
    /// The residual is added up like one more rank's pack.
    using Session = symm::MailboxSession<symm::SentinelPacks, kMost + 1>;

    __host__ __device__ Pack own(unsigned at) const {
        return symm::without_sentinel(reinterpret_cast<const Pack*>(in)[at]);
    }
    /// Sends pack `at` of all rows to every peer, unless a wait has given up.
    __host__ __device__ void send(const Session& mailbox, unsigned at) const {
        const Pack pack = own(at);
        for (int step = 1; step < ranks && !mailbox.gave_up(); ++step) {
            mailbox.send(peer(step), at, pack);
        }
    }
    /// Waits for pack `at` of all peers, and returns the new residual's. False if the wait gave up.
    __host__ __device__ bool receive(Session& mailbox, unsigned at, Pack& sum) const {
        const Pack mine = own(at);
        const Pack before = residual_at<kPlain>(at);
        Pack data[kMost + 1];
        SYMM_UNROLL
        for (int p = 0; p <= kMost; ++p) {
            data[p] = p < ranks ? mine : before;
        }
        if (!mailbox.receive(peers(), at, data)) {
            return false;
        }
        sum = this->template sum_of<T>(data);
        return true;
    }
    /// Stores the sentinel, and pack `at` of the new residual.
    __host__ __device__ void store(const Session& mailbox, unsigned at, const Pack& sum) const {
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            if ((peers() >> p & 1U) != 0) {
                mailbox.clear(p, at);
            }
        }
        if (kPlain || residual != 0) {
            reinterpret_cast<Pack*>(residual)[at] = sum;
        }
    }
};

/// One shot through the mailbox: a block does a row.
template <class T, int kMost, bool kPlain = true>
struct RmsNormPacks : MailedRows<T, kMost, kPlain> {
    static unsigned shared_bytes(unsigned hidden) {
        return RowNorm<T, kPlain>::shared_bytes(hidden);
    }

    __host__ __device__ void operator()(const symm::simt::ThreadBlock& block) const {
        typename MailedRows<T, kMost, kPlain>::Session mailbox(block, *this);
        RowNorm<T, kPlain> norm(block, *this);
        for (unsigned row = block.group_index(); row < norm.rows(); row += block.dim_blocks()) {
            norm.for_packs(row, [&](unsigned at, unsigned) { this->send(mailbox, at); });
        }
        bool arrived = !mailbox.gave_up();
        for (unsigned row = block.group_index(); row < norm.rows(); row += block.dim_blocks()) {
            norm.for_packs(row, [&](unsigned at, unsigned i) {
                Pack sum{};  // of a pack that does not arrive
                arrived = arrived && this->receive(mailbox, at, sum);
                if (arrived) {
                    this->store(mailbox, at, sum);
                }
                norm.take(i, sum);
            });
            if (!norm.finish(row, arrived)) {
                break;
            }
        }
        mailbox.end(block, norm.rows() * norm.packs());
    }
};

/// Parameters of the kernel that reads x in place.
struct RmsNormWindowsParams : RmsNormParams {
    bool two_shots;
    symm::Rendezvous rendezvous;  ///< Of x and the residual.
    symm::BarrierView barrier;
};

/// One or two shots through windows, for at most kMost ranks.
template <class T, int kMost, bool kPlain = true, unsigned kMostThreads = kThreadsFor<kMost>>
struct RmsNormWindows : RmsNormWindowsParams {
    static constexpr unsigned kMaxThreads = kMostThreads;
    static unsigned shared_bytes(unsigned hidden) {
        return RowNorm<T, kPlain>::shared_bytes(hidden) + kMost * sizeof(symm::Buffers);
    }

    __host__ __device__ void operator()(const symm::simt::ThreadBlock& block) const {
        RowNorm<T, kPlain> norm(block, *this);
        auto* const all = reinterpret_cast<symm::Buffers*>(
            block.shared<char>() + RowNorm<T, kPlain>::shared_bytes(hidden));
        if (!rendezvous.meet(block, timeout, all)) {
            return;
        }
        const Places places = places_of(all);
        normalize(block, norm, true, [&](unsigned at) { return add_up(places, at); });
        symm::Barrier end(block, barrier, timeout);
        if (!end.arrive_and_wait()) {
            return;
        }
        if (two_shots) {
            normalize(block, norm, false, [&](unsigned at) { return residual_at<true>(at); });
        }
        end.store_epoch();
    }

private:
    /// x and the residual of each rank; those of this rank beyond the last.
    struct Places {
        const Pack* x[kMost];
        Pack* residual[kMost];
    };
    __host__ __device__ Places places_of(const symm::Buffers* all) const {
        Places places;
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            places.x[p] = reinterpret_cast<const Pack*>(all[p < ranks ? p : rank].in);
            // In this rank's order, so that not all ranks write to the same one at once.
            places.residual[p] = reinterpret_cast<Pack*>(all[p < ranks ? peer(p) : rank].out);
        }
        return places;
    }

    /// Writes the output of the block's rows that this rank adds up, or of the others. `pack_at`
    /// returns the new residual's pack `at` of all rows.
    template <class PackAt>
    __host__ __device__ void normalize(const symm::simt::ThreadBlock& block,
                                       RowNorm<T, kPlain>& norm, bool own,
                                       const PackAt& pack_at) const {
        auto owner = static_cast<int>(block.group_index()) % ranks;
        for (unsigned row = block.group_index(); row < norm.rows(); row += block.dim_blocks()) {
            if (!two_shots || (owner == rank) == own) {
                norm.for_packs(row, [&](unsigned at, unsigned i) { norm.take(i, pack_at(at)); });
                norm.finish(row, true);
            }
            owner = owner + 1 < ranks ? owner + 1 : 0;
        }
    }

    /// Returns the new residual, which it stores.
    __host__ __device__ Pack add_up(const Places& places, unsigned at) const {
        const Pack before = residual_at<kPlain>(at);
        Pack data[kMost + 1];
        SYMM_UNROLL
        for (int p = 0; p <= kMost; ++p) {
            data[p] = p < ranks && p < kMost ? places.x[p < kMost ? p : 0][at] : before;
        }
        const Pack all = sum_of<T>(data);
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            if (p < (two_shots ? ranks : 1) && (kPlain || residual != 0)) {
                places.residual[p][at] = all;
            }
        }
        return all;
    }
};

}  // namespace symm::collectives
