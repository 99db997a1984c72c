#include "labs/06_allreduce/input.hpp"

#include <cmath>

#include "common/cuda/driver.hpp"
#include "common/cuda/launch.hpp"
#include "common/simt/atomic.hpp"

namespace symm {
namespace {

template <class Element>
struct Fill {
    typename Element::Storage* out;
    std::size_t count;
    int rank;
    std::uint32_t salt;
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        for (std::size_t i = block.grid_rank(); i < count; i += block.grid_size()) {
            out[i] = Element::from_float(input_value(rank, i, salt));
        }
    }
};

template <class Element>
struct Check {
    const typename Element::Storage* out;
    std::size_t count;
    int ranks;
    std::uint32_t salt;
    Rounding rounding;
    CheckReport* report;
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        std::uint64_t wrong = 0;
        for (std::size_t i = block.grid_rank(); i < count; i += block.grid_size()) {
            double expected = 0;
            double magnitude = 0;
            for (int rank = 0; rank < ranks; ++rank) {
                const double value =
                    Element::to_float(Element::from_float(input_value(rank, i, salt)));
                expected += value;
                magnitude += fabs(value);
            }
            // Each addition in float may be off by half a unit in the last place of what has been
            // added; then the sum is rounded to the type once.
            const double type_rounding = Element::kType == DataType::kFloat ? 0 : 0x1p-8;
            double tolerance = magnitude * ranks * 0x1p-24 + fabs(expected) * type_rounding;
            if (rounding == Rounding::kEachAddition) {
                tolerance += magnitude * (ranks - 1) * type_rounding;
            }
            const double got = Element::to_float(out[i]);
            if (!(fabs(got - expected) <= tolerance)) {  // a NaN is wrong too
                ++wrong;
                if (simt::claim(&report->claimed, std::uint32_t{0}, std::uint32_t{1})) {
                    report->first_index = i;
                    report->got = got;
                    report->expected = expected;
                }
            }
        }
        if (wrong != 0) {
            simt::fetch_add(&report->wrong, wrong, simt::Order::kRelaxed);
        }
    }
};

/// Enough for memory's rate on a GPU; an emulated one has a host thread for each.
void launch_over(CUstream stream, std::size_t count, const auto& kernel) {
    const unsigned threads = is_emulated() ? 16 : 256;
    const std::size_t most = is_emulated() ? 2 : 1024;
    launch(stream, static_cast<unsigned>(std::min(most, (count + threads - 1) / threads)), threads,
           kernel);
}

}  // namespace

void fill_input(CUstream stream, DataType type, CUdeviceptr at, std::size_t count, int rank,
                std::uint32_t salt) {
    if (type == DataType::kFloat) {
        launch_over(stream, count, Fill<Float>{reinterpret_cast<float*>(at), count, rank, salt});
    } else {
        launch_over(stream, count,
                    Fill<Bfloat16>{reinterpret_cast<std::uint16_t*>(at), count, rank, salt});
    }
}

void check_output(CUstream stream, DataType type, CUdeviceptr at, std::size_t count, int ranks,
                  std::uint32_t salt, Rounding rounding, CheckReport* report) {
    if (type == DataType::kFloat) {
        launch_over(
            stream, count,
            Check<Float>{reinterpret_cast<const float*>(at), count, ranks, salt, rounding, report});
    } else {
        launch_over(stream, count,
                    Check<Bfloat16>{reinterpret_cast<const std::uint16_t*>(at), count, ranks, salt,
                                    rounding, report});
    }
}

}  // namespace symm
