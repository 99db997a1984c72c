#include "labs/06_allreduce/communicator/result_check.hpp"

#include <stdexcept>
#include <string>

#include "common/cuda/check.hpp"

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
    const std::string wrong =
        output_check_.run(stream, arithmetic.type, call(arithmetic, count), rank_, out);
    if (!wrong.empty()) {
        throw std::runtime_error(wrong);
    }
}

}  // namespace symm
