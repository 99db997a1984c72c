#include "labs/06_allreduce/result_check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
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
                    report->index = i;
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

/// Enough threads for the memory bandwidth of a GPU; on an emulated GPU each is a host thread.
void launch_over(CUstream stream, std::size_t count, const auto& kernel) {
    const unsigned threads = is_emulated() ? 16 : 256;
    const std::size_t most = is_emulated() ? 2 : 1024;
    launch(stream, static_cast<unsigned>(std::min(most, (count + threads - 1) / threads)), threads,
           kernel);
}

}  // namespace

void Verifier::fill(const Stream& stream, DataType type, CUdeviceptr in, std::size_t count) {
    ++salt_;
    const auto with = [&](auto element) {
        using Element = decltype(element);
        launch_over(
            stream.get(), count,
            Fill<Element>{reinterpret_cast<typename Element::Storage*>(in), count, rank_, salt_});
    };
    type == DataType::kFloat ? with(Float{}) : with(Bfloat16{});
}

void Verifier::poison(const Stream& stream, CUdeviceptr out, std::size_t bytes) {
    cu_check(cuMemsetD8Async(out, 0xff, bytes, stream.get()), "cuMemsetD8Async(size={})",
             bytes);  // all NaN
}

void Verifier::check(const Stream& stream, DataType type, CUdeviceptr out, std::size_t count,
                     Rounding rounding) {
    cu_check(cuMemsetD8Async(report_.address(), 0, sizeof(CheckReport), stream.get()),
             "cuMemsetD8Async(size={})", sizeof(CheckReport));
    const auto with = [&](auto element) {
        using Element = decltype(element);
        launch_over(stream.get(), count,
                    Check<Element>{reinterpret_cast<const typename Element::Storage*>(out), count,
                                   ranks_, salt_, rounding, report_.as<CheckReport>()});
    };
    type == DataType::kFloat ? with(Float{}) : with(Bfloat16{});
    stream.synchronize("checking the result");
    CheckReport report;
    copy_to_host(&report, report_.address(), sizeof(report));
    if (report.wrong != 0) {
        throw std::runtime_error(fmt::format(
            "rank {}: {} of {} elements are wrong, element {} among them: {} instead of {}", rank_,
            report.wrong, count, report.index, report.got, report.expected));
    }
}

}  // namespace symm
