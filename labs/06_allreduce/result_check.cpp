#include "labs/06_allreduce/result_check.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"

namespace symm {

void Verifier::fill(const Stream& stream, DataType type, CUdeviceptr in, std::size_t count) {
    fill_input(stream.get(), type, in, count, rank_, ++salt_);
}

void Verifier::poison(const Stream& stream, CUdeviceptr out, std::size_t bytes) {
    symm::cu_check(cuMemsetD8Async(out, 0xff, bytes, stream.get()), "cuMemsetD8Async(size={})",
                   bytes);  // all NaN
}

void Verifier::check(const Stream& stream, DataType type, CUdeviceptr out, std::size_t count,
                     Rounding rounding) {
    cu_check(cuMemsetD8Async(report_.address(), 0, sizeof(CheckReport), stream.get()),
             "cuMemsetD8Async(size={})", sizeof(CheckReport));
    check_output(stream.get(), type, out, count, ranks_, salt_, rounding,
                 report_.as<CheckReport>());
    stream.synchronize("checking the result");
    CheckReport report;
    copy_to_host(&report, report_.address(), sizeof(report));
    if (report.wrong != 0) {
        throw std::runtime_error(fmt::format(
            "rank {}: {} of {} elements are wrong, element {} among them: {} instead of {}", rank_,
            report.wrong, count, report.first_index, report.got, report.expected));
    }
}

}  // namespace symm
