#include "labs/06_allreduce/algorithms/ladder/ladder_check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "common/cuda/copy.hpp"

namespace symm::ladder {
namespace {

constexpr float kResidual = 1;  ///< Before the call.

void check_rows(const std::vector<float>& residual, const std::vector<float>& out) {
    for (std::size_t begin = 0; begin < out.size(); begin += kRowFloats) {
        const std::size_t end = std::min(begin + kRowFloats, out.size());
        double squares = 0;
        for (std::size_t i = begin; i < end; ++i) {
            squares += double{residual[i]} * residual[i];
        }
        const double scale = 1 / std::sqrt(squares / static_cast<double>(end - begin) + 1e-5);
        for (std::size_t i = begin; i < end; ++i) {
            const double expected = residual[i] * scale;
            if (!(std::abs(out[i] - expected) <= 1e-4 * std::abs(expected))) {  // nor a NaN
                throw std::runtime_error(
                    fmt::format("normalized element {} of {} is {} instead of {}", i, out.size(),
                                out[i], expected));
            }
        }
    }
}

}  // namespace

void LadderCheck::prepare(const Stream& stream, const Buffers& buffers, std::size_t count) {
    verifier_.fill(stream, {}, buffers.in, count);
    Verifier::poison(stream, buffers.out, count * sizeof(float));
    if (buffers.residual != 0) {
        const std::vector<float> ones(count, kResidual);
        copy_to_device(buffers.residual, ones.data(), count * sizeof(float));
    }
}

void LadderCheck::check(const Stream& stream, const Buffers& buffers, std::size_t count) const {
    if (buffers.residual != 0) {
        std::vector<float> residual(count);
        std::vector<float> out(count);
        copy_to_host(residual.data(), buffers.residual, count * sizeof(float));
        copy_to_host(out.data(), buffers.out, count * sizeof(float));
        check_rows(residual, out);
        for (float& sum : residual) {
            sum -= kResidual;
        }
        copy_to_device(buffers.out, residual.data(), count * sizeof(float));
    }
    verifier_.check(stream, {}, buffers.out, count);
}

}  // namespace symm::ladder
