#include "labs/06_allreduce/verify.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "common/cuda/check.hpp"

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
    auto* report = report_.as<CheckReport>();
    *report = CheckReport{};
    check_output(stream.get(), type, out, count, ranks_, salt_, rounding, report);
    stream.synchronize("checking the result");
    if (report->wrong != 0) {
        throw std::runtime_error(fmt::format(
            "rank {}: {} of {} elements are wrong, element {} among them: {} instead of {}", rank_,
            report->wrong, count, report->first_index, report->got, report->expected));
    }
}

}  // namespace symm
