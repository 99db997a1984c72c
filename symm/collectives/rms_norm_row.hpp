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

/// The sum that sum_of_warp() returns if lane l passes of_lane[l], and lanes from kLanes on pass 0.
/// (Of it, the part of every kStep-th lane from kLane on.) Faster than five shuffles.
template <unsigned kLanes, unsigned kLane = 0, unsigned kStep = 1>
__host__ __device__ float sum_of_lanes(const float* of_lane) {
    if constexpr (kStep == kLanes) {
        return of_lane[kLane];
    } else {
        return sum_of_lanes<kLanes, kLane, 2 * kStep>(of_lane) +
               sum_of_lanes<kLanes, kLane + kStep, 2 * kStep>(of_lane);
    }
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
    static constexpr unsigned kMostHidden = 16384;  ///< The most elements of a row.
    /// Bytes of shared memory for a row.
    __host__ __device__ static unsigned shared_bytes(unsigned hidden) {
        return sizeof(Squares) + hidden * static_cast<unsigned>(sizeof(T));
    }

    __host__ __device__ RowNorm(const symm::simt::ThreadBlock& block, const RmsNormParams& call)
        : output_(call),
          block_(block),
          warp_(block),
          all_(block),
          squares_(block.shared<Squares>()),
          packs_(reinterpret_cast<Pack*>(squares_ + 1)) {
        if (block.thread_rank() < packs()) {  // long before they are needed
            first_weights_ = output_.weights_at(block.thread_rank());
        }
        // The sum of all parts takes some more, which no warp writes.
        for (unsigned p = parts() + block.thread_rank(); p < padded(parts()); p += block.size()) {
            squares_->of_part[0][p] = squares_->of_part[1][p] = 0;
        }
    }

    __host__ __device__ unsigned rows() const { return output_.call.rows; }
    __host__ __device__ unsigned packs() const {
        return output_.call.hidden / symm::kPerPack<T, Pack>;
    }

    /// Calls `use(at, i)` for this thread's packs of a row: pack i of the row is pack `at` of all.
    template <class Use>
    __host__ __device__ void for_packs(unsigned row, const Use& use) const {
        for (unsigned i = block_.thread_rank(); i < packs(); i += block_.size()) {
            use(row * packs() + i, i);
        }
    }

    /// Takes pack i of the row's new residual. The same thread always takes the same packs.
    __host__ __device__ void take(unsigned i, const Pack& residual) {
        packs_[i] = residual;
        if (i == block_.thread_rank()) {
            first_squares_ = squares_of<T>(residual);
        }
    }

    /// Writes the row's output. False on all threads of the block, which then leave, if a wait of
    /// one of them has given up.
    __host__ __device__ bool finish(unsigned row, bool arrived) {
        float all = 0;
        if (!add_up_squares(arrived, all)) {
            return false;
        }
        const float scale = output_.call.scale_of(all);
        for_packs(row, [&](unsigned at, unsigned i) {
            output_.write(at, i, packs_[i], scale,
                          i == block_.thread_rank() ? first_weights_ : output_.weights_at(i));
        });
        return true;
    }

private:
    static constexpr unsigned kLanes = symm::simt::kWarpSize;
    static constexpr unsigned kMostParts = kMostHidden / symm::kPerPack<float, Pack> / kLanes;
    struct alignas(16) Squares {
        float of_part[2][kMostParts];
    };

    /// Of the block's first warp. On a GPU a block has whole warps, and dividing by a constant is
    /// fast.
    __host__ __device__ unsigned lanes() const {
        NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return kLanes;),
                          (return block_.size() < kLanes ? block_.size() : kLanes;))
    }
    /// Parts of a row.
    __host__ __device__ unsigned parts() const { return (packs() + lanes() - 1) / lanes(); }
    __host__ __device__ static unsigned padded(unsigned parts) {
        return parts <= kLanes / 2 ? kLanes / 2 : (parts + kLanes - 1) / kLanes * kLanes;
    }
    /// The squares of this thread's pack i; 0 behind the row's end.
    __host__ __device__ float squares_at(unsigned i) const {
        return i == block_.thread_rank() ? first_squares_
               : i < packs()             ? squares_of<T>(packs_[i])
                                         : 0;
    }
    __host__ __device__ float sum_of_parts(const float* of_part) const {
        if (parts() <= kLanes / 2) {
            return sum_of_lanes<kLanes / 2>(of_part);
        }
        if (parts() <= kLanes) {
            return sum_of_lanes<kLanes>(of_part);
        }
        float of_lane = 0;
        for (unsigned p = warp_.thread_rank(); p < parts(); p += kLanes) {
            of_lane += of_part[p];
        }
        return sum_of_warp(warp_, of_lane);
    }

    /// `all` becomes the sum of the row's squares, with the same bits in each thread of each block.
    /// False on all threads of the block if one of them passes false.
    __host__ __device__ bool add_up_squares(bool arrived, float& all) {
        float* const squares = squares_->of_part[half_];
        for (unsigned first = 0; first < packs(); first += block_.size()) {
            const unsigned i = first + block_.thread_rank();
            const float of_part = sum_of_warp(warp_, squares_at(i));
            if (warp_.thread_rank() == 0 && i < packs()) {
                squares[i / lanes()] = of_part;
            }
        }
        if (!all_.sync(arrived)) {
            return false;
        }
        half_ = 1 - half_;
        all = sum_of_parts(squares);
        return true;
    }

    RowOutput<T, kPlain> output_;
    symm::simt::ThreadBlock block_;
    symm::simt::Warp warp_;
    symm::AbortBarrier all_;
    Squares* squares_;
    Pack* packs_;  ///< The row's new residual.
    typename RowOutput<T, kPlain>::Weights first_weights_{};
    float first_squares_ = 0;  ///< Of this thread's first pack.
    unsigned half_ = 0;
};

}  // namespace symm::collectives
