#pragma once
/// \file
/// A row's squares and its output, for the three kernels of AllReduceRmsNorm.
///
/// The bits of a row do not depend on the rows beside it, nor on the kernel: squares are added up
/// in one order. A pack's squares are added up in turn, then those of a *part*, 32 packs, as
/// sum_of_warp() does; then every 32nd part in turn, and these 32 sums as sum_of_warp() does.

#include <cmath>
#include <symm/kernel.hpp>

#include "rms_norm_output.hpp"

namespace symm::collectives {

/// The most threads of a block, and of one with half as many registers for each: so many do longer
/// rows, or two smaller blocks fit a multiprocessor.
inline constexpr unsigned kThreads = 512;
inline constexpr unsigned kManyThreads = 1024;
/// For at most two ranks the registers suffice.
template <int kMost>
inline constexpr unsigned kThreadsFor = kMost <= 2 ? kManyThreads : kThreads;

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

/// The sum of a row's parts, with the bits that sum_of_warp() returns if lane l passes the sum of
/// every 32nd part from the l-th on. `parts` is a multiple of 32. Faster than five shuffles.
__host__ __device__ inline float sum_of_parts(const float* of_part, unsigned parts) {
    constexpr unsigned kLanes = symm::simt::kWarpSize;
    float of_lane[kLanes];
    SYMM_UNROLL
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        of_lane[lane] = of_part[lane];
    }
    for (unsigned first = kLanes; first < parts; first += kLanes) {
        SYMM_UNROLL
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            of_lane[lane] += of_part[first + lane];
        }
    }
    SYMM_UNROLL
    for (unsigned distance = kLanes / 2; distance > 0; distance /= 2) {
        SYMM_UNROLL
        for (unsigned lane = 0; lane < distance; ++lane) {
            of_lane[lane] += of_lane[lane + distance];
        }
    }
    return of_lane[0];
}

/// std::fma(), since a compiler may use it in one kernel and not in another.
template <class T>
__host__ __device__ float squares_of(const Pack& pack) {
    const auto elements = cuda::std::bit_cast<symm::Elements<T, Pack>>(pack);
    float sum = 0;
    SYMM_UNROLL
    for (unsigned k = 0; k < symm::kPerPack<T, Pack>; ++k) {
        const auto value = static_cast<float>(elements.at[k]);
        sum = std::fma(value, value, sum);
    }
    return sum;
}

/// A block's rows, one after another. Every thread of the block has one. The block's shared memory
/// begins with `shared_bytes()`. A block has whole warps, or a part of one.
template <class T, bool kPlain = true>
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
          packs_(reinterpret_cast<Pack*>(squares_ + 1)),
          first_output_(call, block.thread_rank(), block.thread_rank() < packs()) {
        // Places behind the row's last part, of which add_up_squares() writes none.
        const unsigned rounds = (packs() + block.size() - 1) / block.size();
        const unsigned parts = (rounds * block.size() + lanes() - 1) / lanes();
        parts_ = (parts + kLanes - 1) / kLanes * kLanes;
        for (unsigned p = parts + block.thread_rank(); p < parts_; p += block.size()) {
            squares_->of_part[0][p] = squares_->of_part[1][p] = 0;
        }
    }

    __host__ __device__ unsigned rows() const { return call_.rows; }
    __host__ __device__ unsigned packs() const { return call_.hidden / symm::kPerPack<T, Pack>; }

    /// Calls `use(at, i)` for this thread's packs of a row: pack i of the row is pack `at` of all.
    template <class Use>
    __host__ __device__ void for_packs(unsigned row, const Use& use) const {
        for (unsigned i = block_.thread_rank(); i < packs(); i += block_.size()) {
            use(row * packs() + i, i);
        }
    }

    /// Takes pack i of the row's new residual. The same thread always takes the same packs.
    __host__ __device__ void take(unsigned i, const Pack& residual) {
        if (i == block_.thread_rank()) {
            first_ = residual;
        } else {
            packs_[i] = residual;
        }
    }

    /// Writes the row's output. False on all threads of the block, which then leave, if a wait of
    /// one of them has given up.
    __host__ __device__ bool finish(unsigned row, bool arrived) {
        float all = 0;
        if (!add_up_squares(arrived, all)) {
            return false;
        }
        const float scale = call_.scale_of(all);
        for_packs(row, [&](unsigned at, unsigned i) {
            if (i == block_.thread_rank()) {
                first_output_.write(at, first_, scale);
            } else {
                RowOutput<T, kPlain>(call_, i, true).write(at, packs_[i], scale);
            }
        });
        return true;
    }

private:
    static constexpr unsigned kLanes = symm::simt::kWarpSize;
    /// Of a row of 16,384 floats, and of warps without a pack in the last round.
    static constexpr unsigned kMostParts = 16384 / 4 / kLanes + kManyThreads / kLanes;
    struct alignas(16) Squares {
        float of_part[2][kMostParts];
    };

    /// Of the block's first warp.
    __host__ __device__ unsigned lanes() const {
        return block_.size() < kLanes ? block_.size() : kLanes;
    }
    /// The squares of this thread's pack i; 0 behind the row's end.
    __host__ __device__ float squares_at(unsigned i) const {
        return i >= packs() ? 0 : squares_of<T>(i == block_.thread_rank() ? first_ : packs_[i]);
    }

    /// `all` becomes the sum of the row's squares, with the same bits in each thread of each block.
    /// False on all threads of the block if one of them passes false.
    __host__ __device__ bool add_up_squares(bool arrived, float& all) {
        float* const squares = squares_->of_part[half_];
        for (unsigned first = 0; first < packs(); first += block_.size()) {
            const unsigned i = first + block_.thread_rank();
            const float of_part = sum_of_warp(warp_, squares_at(i));
            if (warp_.thread_rank() == 0) {
                squares[i / lanes()] = of_part;
            }
        }
        if (!all_.sync(arrived)) {
            return false;
        }
        half_ = 1 - half_;
        all = sum_of_parts(squares, parts_);
        return true;
    }

    const RmsNormParams& call_;
    symm::simt::ThreadBlock block_;
    symm::simt::Warp warp_;
    symm::AbortBarrier all_;
    Squares* squares_;
    Pack* packs_;  ///< The row's new residual, but for each thread's first pack.
    Pack first_{};
    RowOutput<T, kPlain> first_output_;
    unsigned parts_;
    unsigned half_ = 0;
};

}  // namespace symm::collectives
