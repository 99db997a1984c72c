#pragma once
/// \file
/// The fused call: residual += sum over ranks of in; out = residual / rms(residual), row by row.
///
/// Three launches first: rung 4's AllReduce into `out`, AddResidual, Normalize. Then two: the
/// AllReduce and AddAndNormalize. Then one, InOneKernel: a row that has arrived is normalized while
/// others are on their way, and no sum goes through `out`.
///
/// The real one (symm/collectives/all_reduce_rms_norm_kernel.hpp) has weights and all types, adds
/// up squares by warps, and keeps a row in shared memory. Its blocks leave where a wait gave up.

#include <cmath>

#include "labs/06_allreduce/algorithms/ladder/4_sentinel.hpp"

namespace symm::ladder {

struct AddResidual : Rung {
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        for (std::size_t i = block.grid_rank(); i < packs(); i += block.grid_size()) {
            add_up(i, load(out.of(rank), i));
        }
    }
    /// Adds a sum to pack i of the residual, and returns the new one.
    __host__ __device__ Pack add_up(std::size_t i, const Pack& sum) const {
        Pack all = load(residual, i);
        add(all, 1, sum);
        store(residual, i, all);
        return all;
    }
};

struct Normalize : BySentinel {
    static constexpr std::size_t kRow = kRowFloats / kFloats;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        normalize(block, [this](std::size_t i) { return load(residual, i); });
    }
    /// A block does a row at a time. `take_in(i)` returns pack i of the new residual.
    template <class TakeIn>
    __host__ __device__ void normalize(const simt::ThreadBlock& block,
                                       const TakeIn& take_in) const {
        for (std::size_t begin = block.group_index() * kRow; begin < packs();
             begin += block.dim_blocks() * kRow) {
            const std::size_t end = begin + kRow < packs() ? begin + kRow : packs();
            float squares = 0;
            for (std::size_t i = begin + block.thread_rank(); i < end; i += block.size()) {
                const auto row = cuda::std::bit_cast<Elements<float, Pack>>(take_in(i));
                for (const float x : row.at) {
                    squares += x * x;
                }
            }
            const std::size_t left = count - begin * kFloats;
            const auto floats = static_cast<float>(left < kRowFloats ? left : kRowFloats);
            const float scale = 1 / sqrtf(sum_of_block(block, squares) / floats + 1e-5F);
            for (std::size_t i = begin + block.thread_rank(); i < end; i += block.size()) {
                auto row = cuda::std::bit_cast<Elements<float, Pack>>(load(residual, i));
                for (float& x : row.at) {
                    x *= scale;
                }
                store(out.of(rank), i, cuda::std::bit_cast<Pack>(row));
            }
        }
    }
    /// The sum of all threads' values.
    __host__ __device__ static float sum_of_block(const simt::ThreadBlock& block, float mine) {
        auto* const of_thread = block.shared<float>();
        block.sync();  // all threads have read those of the row before
        of_thread[block.thread_rank()] = mine;
        block.sync();
        float sum = 0;
        for (unsigned t = 0; t < block.size(); ++t) {
            sum += of_thread[t];
        }
        return sum;
    }
};

struct AddAndNormalize : Normalize {
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const AddResidual residuals{*this};
        normalize(block, [&](std::size_t i) { return residuals.add_up(i, load(out.of(rank), i)); });
    }
};

struct InOneKernel : Normalize {
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const std::uint32_t epoch = epochs->next(block);
        const AddResidual residuals{*this};
        simt::Waiter waiter(timeout);
        send_all(block, waiter, epoch);
        normalize(block,
                  [&](std::size_t i) { return residuals.add_up(i, sum_at(waiter, epoch, i)); });
        epochs->store(block, epoch);
    }
};

}  // namespace symm::ladder
