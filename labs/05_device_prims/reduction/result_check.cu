#include "labs/05_device_prims/reduction/result_check.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/launch.hpp"

namespace symm {
namespace {

template <class T>
struct FillKernel {
    CheckedCall call;
    int rank;
    T* input;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        for (std::size_t i = block.grid_rank(); i < call.input_count(); i += block.grid_size()) {
            input[i] = call.input<T>(rank, i);
        }
    }
};

/// The result of a check.
struct Report {
    std::uint64_t wrong;  ///< Elements.
    std::uint64_t index;  ///< One of them,
    double got;           ///< with the value that it has
    double expected;      ///< and the one that it should have.
    std::uint32_t claimed;
};

template <class T>
struct CheckKernel {
    CheckedCall call;
    int rank;
    const T* output;
    Report* report;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        std::uint64_t found = 0;
        for (std::size_t i = block.grid_rank(); i < call.output_count(); i += block.grid_size()) {
            const auto expected = static_cast<Wide<T>>(call.output<T>(rank, i));
            const auto got = static_cast<Wide<T>>(output[i]);
            if (!(got == expected)) {  // a NaN is wrong, too
                ++found;
                if (simt::claim(&report->claimed, std::uint32_t{0}, std::uint32_t{1})) {
                    report->index = i;
                    report->got = static_cast<double>(got);
                    report->expected = static_cast<double>(expected);
                }
            }
        }
        if (found != 0) {
            simt::fetch_add(&report->wrong, found, simt::Order::kRelaxed);
        }
    }
};

template <class Kernel>
void launch_wide(CUstream stream, const Kernel& kernel) {
    launch(stream, is_emulated() ? 2 : 1024, is_emulated() ? 8 : 256, kernel);
}

}  // namespace

Verifier::Verifier(int rank, int ranks) : rank_(rank), ranks_(ranks), report_(sizeof(Report)) {}

void Verifier::fill(const Stream& stream, const Arithmetic& arithmetic, CUdeviceptr in,
                    std::size_t count) {
    ++salt_;
    with_type(arithmetic.type, [&](auto zero) {
        using T = decltype(zero);
        launch_wide(stream.get(),
                    FillKernel<T>{call(arithmetic, count), rank_, reinterpret_cast<T*>(in)});
    });
}

Verifier::Places Verifier::places(const Arithmetic& arithmetic, CUdeviceptr in, CUdeviceptr out,
                                  std::size_t count) const {
    const std::size_t own =
        in == out ? count * size_of(arithmetic.type) * static_cast<std::size_t>(rank_) : 0;
    const CollectiveRow& row = row_of(arithmetic.collective);
    return {in + (row.out_has_parts() ? own : 0), out + (row.in_has_parts() ? own : 0)};
}

void Verifier::poison(const Stream& stream, CUdeviceptr out, std::size_t bytes) {
    cu_check(cuMemsetD8Async(out, 0xff, bytes, stream.get()), "cuMemsetD8Async(size={})", bytes);
}

void Verifier::poison(const Stream& stream, const Arithmetic& arithmetic, CUdeviceptr out,
                      std::size_t count) const {
    poison(stream, out, call(arithmetic, count).output_count() * size_of(arithmetic.type));
}

void Verifier::check(const Stream& stream, const Arithmetic& arithmetic, CUdeviceptr out,
                     std::size_t count) const {
    const CheckedCall checked = call(arithmetic, count);
    if (!checked.writes(rank_)) {
        return;
    }
    cu_check(cuMemsetD8Async(report_.address(), 0, sizeof(Report), stream.get()),
             "cuMemsetD8Async(size={})", sizeof(Report));
    with_type(arithmetic.type, [&](auto zero) {
        using T = decltype(zero);
        launch_wide(stream.get(), CheckKernel<T>{checked, rank_, reinterpret_cast<const T*>(out),
                                                 report_.as<Report>()});
    });
    stream.synchronize("checking the result");
    Report report;
    copy_to_host(&report, report_.address(), sizeof(report));
    if (report.wrong != 0) {
        throw std::runtime_error(fmt::format(
            "rank {}: {} of {} elements are wrong, element {} among them: {} instead of {}", rank_,
            report.wrong, checked.output_count(), report.index, report.got, report.expected));
    }
}

}  // namespace symm
