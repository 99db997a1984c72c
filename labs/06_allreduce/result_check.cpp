#include "labs/06_allreduce/result_check.hpp"

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"

namespace symm {

void Verifier::fill(const Stream& stream, const Arithmetic& arithmetic, CUdeviceptr in,
                    std::size_t count) {
    ++salt_;
    queue_fill(stream.get(), arithmetic.type, call(arithmetic, count), rank_, in);
}

void Verifier::poison(const Stream& stream, CUdeviceptr out, std::size_t bytes) {
    cu_check(cuMemsetD8Async(out, 0xff, bytes, stream.get()), "cuMemsetD8Async(size={})", bytes);
}

void Verifier::check(const Stream& stream, const Arithmetic& arithmetic, CUdeviceptr out,
                     std::size_t count) {
    cu_check(cuMemsetD8Async(report_.address(), 0, sizeof(CheckReport), stream.get()),
             "cuMemsetD8Async(size={})", sizeof(CheckReport));
    queue_check(stream.get(), arithmetic.type, call(arithmetic, count), rank_, out,
                report_.as<CheckReport>());
    stream.synchronize("checking the result");
    CheckReport report;
    copy_to_host(&report, report_.address(), sizeof(report));
    throw_if_wrong(report, call(arithmetic, count), rank_);
}

}  // namespace symm
