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

Verifier::Places Verifier::places(const Arithmetic& arithmetic, CUdeviceptr in, CUdeviceptr out,
                                  std::size_t count) const {
    const std::size_t own =
        in == out ? count * size_of(arithmetic.type) * static_cast<std::size_t>(rank_) : 0;
    return {in + (arithmetic.collective == Collective::kAllGather ? own : 0),
            out + (arithmetic.collective == Collective::kReduceScatter ? own : 0)};
}

void Verifier::poison(const Stream& stream, CUdeviceptr out, std::size_t bytes) {
    cu_check(cuMemsetD8Async(out, 0xff, bytes, stream.get()), "cuMemsetD8Async(size={})", bytes);
}

void Verifier::poison(const Stream& stream, const Arithmetic& arithmetic, CUdeviceptr out,
                      std::size_t count) const {
    poison(stream, out, call(arithmetic, count).output_count() * size_of(arithmetic.type));
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
