#pragma once
/// \file
/// Parameters of AllReduceRmsNorm's kernels, and the output that they write.

#include <cuda_fp8.h>

#include <cmath>
#include <symm/kernel.hpp>

namespace symm::collectives {

using Pack = symm::simt::Pack16;

/// Parameters of all kernels. x is `in`, with `count` elements in all.
struct RmsNormParams : symm::MailboxParams {
    CUdeviceptr residual;  ///< 0: none.
    CUdeviceptr weight;    ///< One row.
    unsigned rows;
    unsigned hidden;             ///< Elements of a row: whole packs.
    float epsilon;               ///< Added to the mean of a row's squares.
    float weight_offset = 0;     ///< Added to each weight.
    CUdeviceptr bias = 0;        ///< One row; 0: none.
    CUdeviceptr out_scale = 0;   ///< One float, if `out` has elements of float8 (e4m3).
    bool float_weights = false;  ///< Weight and bias are floats, whatever x is.

    /// The sum of the ranks' packs, with the residual behind them. Its operation is known here, so
    /// no other one is compiled.
    template <class T, int kMost>
    __host__ __device__ Pack sum_of(const Pack (&packs)[kMost]) const {
        return symm::Reduction(symm::ReduceOp::kSum, ranks).reduce<T>(packs, ranks + 1);
    }
    /// Pack `at` of the residual.
    template <bool kPlain>
    __host__ __device__ Pack residual_at(unsigned at) const {
        return kPlain || residual != 0 ? reinterpret_cast<const Pack*>(residual)[at] : Pack{};
    }
    /// 1 / rms of a row, from the sum of its squares.
    __host__ __device__ float scale_of(float squares) const {
        const auto elements = static_cast<float>(hidden);
        NV_IF_ELSE_TARGET(NV_IS_DEVICE,  // approximate, as all ranks' results are
                          (return rsqrtf(__fadd_rn(__fdividef(squares, elements), epsilon));),
                          (return 1.0F / std::sqrt(squares / elements + epsilon);))
    }
};

/// Writes the output, a pack at a time: `out = sum / rms * weight`; unless kPlain, also the rest:
/// `(sum / rms * (weight + weight_offset) + bias) / out_scale`.
template <class T, bool kPlain>
class RowOutput {
    static constexpr unsigned kElements = symm::kPerPack<T, Pack>;
    struct Factors {
        float at[kElements];
    };

public:
    /// Of one pack.
    using Weights = std::conditional_t<kPlain, symm::Elements<T, Pack>, Factors>;

    explicit __host__ __device__ RowOutput(const RmsNormParams& of) : call(of) {}

    __host__ __device__ Weights weights_at(unsigned i) const { return load(call.weight, i); }

    /// Writes pack i of a row, pack `at` of all. `scale` is 1 / rms of the row.
    __host__ __device__ void write(unsigned at, unsigned i, const Pack& sum, float scale,
                                   const Weights& weights) const {
        const auto sums = cuda::std::bit_cast<symm::Elements<T, Pack>>(sum);
        Factors values;
        SYMM_UNROLL
        for (unsigned k = 0; k < kElements; ++k) {
            values.at[k] = static_cast<float>(sums.at[k]) * scale;
        }
        if constexpr (kPlain) {
            SYMM_UNROLL
            for (unsigned k = 0; k < kElements; ++k) {
                values.at[k] *= static_cast<float>(weights.at[k]);
            }
            store(at, values);
        } else {
            const Factors bias = call.bias != 0 ? load(call.bias, i) : Factors{};
            SYMM_UNROLL
            for (unsigned k = 0; k < kElements; ++k) {
                values.at[k] =
                    std::fma(values.at[k], weights.at[k] + call.weight_offset, bias.at[k]);
            }
            if (call.out_scale != 0) {
                store_float8(at, values);
            } else {
                store(at, values);
            }
        }
    }

    const RmsNormParams& call;

private:
    /// Pack i of a row of weights or biases.
    __host__ __device__ Weights load(CUdeviceptr row, unsigned i) const {
        const auto* const packs = reinterpret_cast<const Pack*>(row);
        if constexpr (kPlain) {
            return cuda::std::bit_cast<Weights>(packs[i]);
        } else if (call.float_weights) {
            return load_as<float>(packs, i);
        } else {
            return load_as<T>(packs, i);
        }
    }
    template <class Element>
    __host__ __device__ static Factors load_as(const Pack* packs, unsigned i) {
        constexpr unsigned kIn = symm::kPerPack<Element, Pack>;
        Factors factors;
        SYMM_UNROLL
        for (unsigned k = 0; k < kElements; k += kIn) {
            const auto elements = cuda::std::bit_cast<symm::Elements<Element, Pack>>(
                packs[i * (kElements / kIn) + k / kIn]);
            SYMM_UNROLL
            for (unsigned j = 0; j < kIn; ++j) {
                factors.at[k + j] = static_cast<float>(elements.at[j]);
            }
        }
        return factors;
    }

    __host__ __device__ void store(unsigned at, const Factors& values) const {
        symm::Elements<T, Pack> result;
        SYMM_UNROLL
        for (unsigned k = 0; k < kElements; ++k) {
            result.at[k] = static_cast<T>(values.at[k]);
        }
        reinterpret_cast<Pack*>(call.out)[at] = cuda::std::bit_cast<Pack>(result);
    }
    /// Values beyond float8's become its largest, 448.
    __host__ __device__ void store_float8(unsigned at, const Factors& values) const {
        struct alignas(kElements) {
            __nv_fp8_storage_t at[kElements];
        } result;
        const float scale = *reinterpret_cast<const float*>(call.out_scale);
        SYMM_UNROLL
        for (unsigned k = 0; k < kElements; ++k) {
            result.at[k] = __nv_cvt_float_to_fp8(values.at[k] / scale, __NV_SATFINITE, __NV_E4M3);
        }
        reinterpret_cast<decltype(result)*>(call.out)[at] = result;
    }
};

}  // namespace symm::collectives
