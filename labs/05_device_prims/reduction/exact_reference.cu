#include "labs/05_device_prims/reduction/exact_reference.hpp"

#include <fmt/core.h>

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

void queue_fill(CUstream stream, DataType type, const CheckedCall& call, int rank,
                CUdeviceptr input) {
    with_type(type, [&](auto zero) {
        using T = decltype(zero);
        launch_wide(stream, FillKernel<T>{call, rank, reinterpret_cast<T*>(input)});
    });
}

OutputCheck::OutputCheck() : report_(sizeof(Report)) {}

std::string OutputCheck::run(const Stream& stream, DataType type, const CheckedCall& call, int rank,
                             CUdeviceptr output) const {
    cu_check(cuMemsetD8Async(report_.address(), 0, sizeof(Report), stream.get()),
             "cuMemsetD8Async(size={})", sizeof(Report));
    with_type(type, [&](auto zero) {
        using T = decltype(zero);
        launch_wide(stream.get(), CheckKernel<T>{call, rank, reinterpret_cast<const T*>(output),
                                                 report_.as<Report>()});
    });
    stream.synchronize("checking the result");
    Report report;
    copy_to_host(&report, report_.address(), sizeof(report));
    if (report.wrong == 0) {
        return "";
    }
    return fmt::format(
        "rank {}: {} of {} elements are wrong, element {} among them: {} instead of "
        "{}",
        rank, report.wrong, call.output_count(), report.index, report.got, report.expected);
}

}  // namespace symm
