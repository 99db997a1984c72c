#pragma once
/// \file
/// The element types as kernels see them: packed in words, added up in float.
///
/// Every type gives: `Storage`, what memory holds; `to_float` and `from_float`, for one element;
/// `unpack` and `pack`, for the elements of a 4-byte word. `Sums` holds the running float sums of
/// the elements in `kWords` words, and rounds them to the type once, at the end.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <nv/target>

#include "common/simt/pack.hpp"
#include "labs/05_device_prims/data_type.hpp"

namespace symm {

/// A value's bits as another type of the same size.
template <class To, class From>
__host__ __device__ To bits_as(const From& from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
}

/// IEEE single precision: a word is an element.
struct Float {
    using Storage = float;
    static constexpr DataType kType = DataType::kFloat;
    static constexpr int kPerWord = 1;
    __host__ __device__ static float to_float(Storage value) { return value; }
    __host__ __device__ static Storage from_float(float value) { return value; }
    __host__ __device__ static void unpack(std::uint32_t word, float* out) {
        out[0] = bits_as<float>(word);
    }
    __host__ __device__ static std::uint32_t pack(const float* in) {
        return bits_as<std::uint32_t>(in[0]);
    }
};

/// bfloat16, the upper half of a float: a word holds two, the first in the lower half.
struct Bfloat16 {
    using Storage = std::uint16_t;
    static constexpr DataType kType = DataType::kBfloat16;
    static constexpr int kPerWord = 2;
    __host__ __device__ static float to_float(Storage value) {
        return bits_as<float>(std::uint32_t{value} << 16);
    }
    /// Rounds to the nearest, ties to even. A NaN stays one.
    __host__ __device__ static Storage from_float(float value) {
        const auto bits = bits_as<std::uint32_t>(value);
        if ((bits & 0x7fffffffU) > 0x7f800000U) {
            return static_cast<Storage>((bits >> 16) | 0x40U);
        }
        return static_cast<Storage>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
    }
    __host__ __device__ static void unpack(std::uint32_t word, float* out) {
        out[0] = bits_as<float>(word << 16);
        out[1] = bits_as<float>(word & 0xffff0000U);
    }
    __host__ __device__ static std::uint32_t pack(const float* in) {
        NV_IF_ELSE_TARGET(NV_PROVIDES_SM_80,
                          (std::uint32_t word;  // one instruction for both
                           asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
                               : "=r"(word)
                               : "f"(in[1]), "f"(in[0]));
                           return word;),
                          (return from_float(in[0]) | (std::uint32_t{from_float(in[1])} << 16);))
    }
};

/// Running sums of the elements in `kWords` words.
template <class Element, int kWords>
struct Sums {
    float value[kWords * Element::kPerWord];

    /// Starts with the elements of the first rank.
    __host__ __device__ explicit Sums(const std::uint32_t (&words)[kWords]) {
        for (int w = 0; w < kWords; ++w) {
            Element::unpack(words[w], &value[w * Element::kPerWord]);
        }
    }
    /// Adds the next rank's.
    __host__ __device__ void add(const std::uint32_t (&words)[kWords]) {
        for (int w = 0; w < kWords; ++w) {
            float next[Element::kPerWord];
            Element::unpack(words[w], next);
            for (int i = 0; i < Element::kPerWord; ++i) {
                value[w * Element::kPerWord + i] += next[i];
            }
        }
    }
    /// Rounds to the type.
    __host__ __device__ void store(std::uint32_t (&words)[kWords]) const {
        for (int w = 0; w < kWords; ++w) {
            words[w] = Element::pack(&value[w * Element::kPerWord]);
        }
    }
};

/// The sum of the first `count` packs, at least one, in their order.
template <class Element, int kMost>
__host__ __device__ simt::Pack16 sum_of(const simt::Pack16 (&packs)[kMost], int count) {
    struct Words {
        std::uint32_t word[4];
    };
    Sums<Element, 4> sums(bits_as<Words>(packs[0]).word);
    SYMM_UNROLL
    for (int p = 1; p < kMost; ++p) {
        if (p < count) {
            sums.add(bits_as<Words>(packs[p]).word);
        }
    }
    Words result;
    sums.store(result.word);
    return bits_as<simt::Pack16>(result);
}

}  // namespace symm
