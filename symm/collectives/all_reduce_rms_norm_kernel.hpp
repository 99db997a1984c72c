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

#include <cmath>
#include <symm/kernel.hpp>

namespace symm::collectives {

using Pack = symm::simt::Pack16;

/// The most threads of a block, and of one with half as many registers for each: so many do longer
/// rows, or two smaller blocks fit a multiprocessor.
inline constexpr unsigned kThreads = 512;
inline constexpr unsigned kManyThreads = 1024;
/// For at most two ranks the registers suffice.
template <int kMost>
inline constexpr unsigned kThreadsFor = kMost <= 2 ? kManyThreads : kThreads;

/// Parameters of all kernels. x is `in`, with `count` elements in all.
struct RmsNormParams : symm::MailboxParams {
    CUdeviceptr residual;
    CUdeviceptr weight;  ///< One row.
    unsigned rows;
    unsigned hidden;  ///< Elements of a row: whole packs.
    float epsilon;    ///< Added to the mean of a row's squares.

    /// The sum of the ranks' packs, with the residual behind them. Its operation is known here, so
    /// no other one is compiled.
    template <class T, int kMost>
    __host__ __device__ Pack sum_of(const Pack (&packs)[kMost]) const {
        return symm::Reduction(symm::ReduceOp::kSum, ranks).reduce<T>(packs, ranks + 1);
    }
    /// 1 / rms of a row, from the sum of its squares.
    __host__ __device__ float scale(float squares) const {
        const auto elements = static_cast<float>(hidden);
        NV_IF_ELSE_TARGET(NV_IS_DEVICE,  // approximate, as all ranks' results are
                          (return rsqrtf(__fdividef(squares, elements) + epsilon);),
                          (return 1.0F / std::sqrt(squares / elements + epsilon);))
    }
};

/// The sum over the lanes, which all get the same bits.
__host__ __device__ inline float sum_of_warp(const symm::simt::Warp& warp, float value) {
    SYMM_UNROLL
    for (unsigned distance = symm::simt::kWarpSize / 2; distance > 0; distance /= 2) {
        if (distance < warp.size()) {
            value += warp.shfl(value, warp.thread_rank() ^ distance);
        }
    }
    return value;
}

template <class T>
__host__ __device__ float squares_of(const Pack& pack) {
    const auto elements = cuda::std::bit_cast<symm::Elements<T, Pack>>(pack);
    float sum = 0;
    SYMM_UNROLL
    for (unsigned k = 0; k < symm::kPerPack<T, Pack>; ++k) {
        const auto value = static_cast<float>(elements.at[k]);
        sum += value * value;
    }
    return sum;
}

/// A pack of the output.
template <class T>
__host__ __device__ Pack scaled(const Pack& pack, float scale, const Pack& weight) {
    const auto values = cuda::std::bit_cast<symm::Elements<T, Pack>>(pack);
    const auto weights = cuda::std::bit_cast<symm::Elements<T, Pack>>(weight);
    symm::Elements<T, Pack> result;
    SYMM_UNROLL
    for (unsigned k = 0; k < symm::kPerPack<T, Pack>; ++k) {
        result.at[k] = static_cast<T>(static_cast<float>(values.at[k]) * scale *
                                      static_cast<float>(weights.at[k]));
    }
    return cuda::std::bit_cast<Pack>(result);
}

/// A block's rows, one after another. Every thread of the block has one. The block's shared memory
/// begins with `shared_bytes()`.
template <class T>
class RowNorm {
public:
    /// Bytes of shared memory for a row.
    __host__ __device__ static unsigned shared_bytes(unsigned hidden) {
        return sizeof(Squares) + hidden * static_cast<unsigned>(sizeof(T));
    }

    __host__ __device__ RowNorm(const symm::simt::ThreadBlock& block, const RmsNormParams& call)
        : call_(call),
          block_(block),
          warp_(block),
          all_(block),
          squares_(block.shared<Squares>()),
          packs_(reinterpret_cast<Pack*>(squares_ + 1)) {
        if (block.thread_rank() < packs()) {  // long before it is needed
            first_weight_ = weight()[block.thread_rank()];
        }
    }

    __host__ __device__ unsigned rows() const { return call_.rows; }
    __host__ __device__ unsigned packs() const { return call_.hidden / kElements; }

    /// Calls `use(at, i)` for this thread's packs of a row: pack i of the row is pack `at` of all.
    template <class Use>
    __host__ __device__ void for_packs(unsigned row, const Use& use) const {
        for (unsigned i = block_.thread_rank(); i < packs(); i += block_.size()) {
            use(row * packs() + i, i);
        }
    }

    /// Takes pack i of the row's new residual. The same thread always takes the same packs.
    __host__ __device__ void take(unsigned i, const Pack& residual) {
        sum_ += squares_of<T>(residual);
        packs_[i] = residual;
    }

    /// Writes the row's output. False on all threads of the block, which then leave, if a wait of
    /// one of them has given up.
    __host__ __device__ bool finish(unsigned row, bool arrived) {
        float all = 0;
        if (!add_up_squares(arrived, all)) {
            return false;
        }
        const float scale = call_.scale(all);
        for_packs(row, [&](unsigned at, unsigned i) {
            const Pack weights = i == block_.thread_rank() ? first_weight_ : weight()[i];
            reinterpret_cast<Pack*>(call_.out)[at] = scaled<T>(packs_[i], scale, weights);
        });
        return true;
    }

private:
    static constexpr unsigned kElements = symm::kPerPack<T, Pack>;
    struct alignas(16) Squares {
        float of_warp[2][kManyThreads / symm::simt::kWarpSize];
    };

    __host__ __device__ const Pack* weight() const {
        return reinterpret_cast<const Pack*>(call_.weight);
    }

    /// `all`, which is 0, becomes the sum of all threads' squares of the row, with the same bits in
    /// each. False on all threads of the block if one of them passes false.
    __host__ __device__ bool add_up_squares(bool arrived, float& all) {
        float* const squares = squares_->of_warp[half_];
        const float of_warp = sum_of_warp(warp_, sum_);
        if (warp_.thread_rank() == 0) {
            squares[warp_.meta_group_rank()] = of_warp;
        }
        if (!all_.sync(arrived)) {
            return false;
        }
        half_ = 1 - half_;
        sum_ = 0;
        const unsigned warps = (block_.size() + symm::simt::kWarpSize - 1) / symm::simt::kWarpSize;
        for (unsigned w = 0; w < warps; ++w) {  // faster than five shuffles
            all += squares[w];
        }
        return true;
    }

    const RmsNormParams& call_;
    symm::simt::ThreadBlock block_;
    symm::simt::Warp warp_;
    symm::AbortBarrier all_;
    Squares* squares_;
    Pack* packs_;  ///< The row's new residual.
    Pack first_weight_{};
    float sum_ = 0;  ///< Of this thread's squares.
    unsigned half_ = 0;
};

/// One shot through the mailbox, for at most kMost ranks: what a thread does with a pack.
template <class T, int kMost>
struct MailedRows : RmsNormParams {
    static constexpr unsigned kMaxThreads = kThreadsFor<kMost>;
    /// The residual is added up like one more rank's pack.
    using Session = symm::MailboxSession<symm::SentinelPacks, kMost + 1>;

    __host__ __device__ Pack own(unsigned at) const {
        return symm::without_sentinel(reinterpret_cast<const Pack*>(in)[at]);
    }
    /// Sends pack `at` of all rows to every peer.
    __host__ __device__ void send(const Session& mailbox, unsigned at) const {
        const Pack pack = own(at);
        for (int step = 1; step < ranks; ++step) {
            mailbox.send(peer(step), at, pack);
        }
    }
    /// Waits for pack `at` of all peers, and returns the new residual's. False if the wait gave up.
    __host__ __device__ bool receive(Session& mailbox, unsigned at, Pack& sum) const {
        const Pack mine = own(at);
        const Pack before = reinterpret_cast<const Pack*>(residual)[at];
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
        reinterpret_cast<Pack*>(residual)[at] = sum;
    }
};

/// One shot through the mailbox: a block does a row.
template <class T, int kMost>
struct RmsNormPacks : MailedRows<T, kMost> {
    static unsigned shared_bytes(unsigned hidden) { return RowNorm<T>::shared_bytes(hidden); }

    __host__ __device__ void operator()(const symm::simt::ThreadBlock& block) const {
        typename MailedRows<T, kMost>::Session mailbox(block, *this);
        RowNorm<T> norm(block, *this);
        bool arrived = !mailbox.gave_up();
        for (unsigned row = block.group_index(); arrived && row < norm.rows();
             row += block.dim_blocks()) {
            norm.for_packs(row, [&](unsigned at, unsigned) { this->send(mailbox, at); });
        }
        for (unsigned row = block.group_index(); row < norm.rows(); row += block.dim_blocks()) {
            norm.for_packs(row, [&](unsigned at, unsigned i) {
                Pack sum;
                arrived = arrived && this->receive(mailbox, at, sum);
                if (arrived) {
                    this->store(mailbox, at, sum);
                    norm.take(i, sum);
                }
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
template <class T, int kMost, unsigned kMostThreads = kThreadsFor<kMost>>
struct RmsNormWindows : RmsNormWindowsParams {
    static constexpr unsigned kMaxThreads = kMostThreads;
    static unsigned shared_bytes(unsigned hidden) {
        return RowNorm<T>::shared_bytes(hidden) + kMost * sizeof(symm::Buffers);
    }

    __host__ __device__ void operator()(const symm::simt::ThreadBlock& block) const {
        RowNorm<T> norm(block, *this);
        auto* const all = reinterpret_cast<symm::Buffers*>(block.shared<char>() +
                                                           RowNorm<T>::shared_bytes(hidden));
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
            normalize(block, norm, false,
                      [&](unsigned at) { return reinterpret_cast<const Pack*>(residual)[at]; });
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
    __host__ __device__ void normalize(const symm::simt::ThreadBlock& block, RowNorm<T>& norm,
                                       bool own, const PackAt& pack_at) const {
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
        const Pack before = reinterpret_cast<const Pack*>(residual)[at];
        Pack data[kMost + 1];
        SYMM_UNROLL
        for (int p = 0; p <= kMost; ++p) {
            data[p] = p < ranks && p < kMost ? places.x[p < kMost ? p : 0][at] : before;
        }
        const Pack all = sum_of<T>(data);
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            if (p < (two_shots ? ranks : 1)) {
                places.residual[p][at] = all;
            }
        }
        return all;
    }
};

}  // namespace symm::collectives
