#include "labs/02_access/shared_sum.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "common/pattern/pattern.hpp"
#include "labs/02_access/kernels.hpp"
#include "labs/02_access/shared_buffer.hpp"

namespace symm {
namespace {

/// The part of the buffer that the `which`-th of `count` users writes. Stripes start at multiples
/// of four words, where a kernel's 16-byte stores start; the last one ends where the buffer ends.
pattern::Range stripe(CUdeviceptr base, std::size_t words, std::size_t which, std::size_t count) {
    const std::size_t each = words / count / 4 * 4;
    const std::size_t first = which * each;
    const std::size_t length = which + 1 == count ? words - first : each;
    return {base + first * sizeof(std::uint32_t), length, 0, first};
}

}  // namespace

bool SharedSum::right() const {
    return !sums.empty() && std::all_of(sums.begin(), sums.end(),
                                        [this](std::uint64_t sum) { return sum == expected; });
}

SharedSum sum_shared_buffer(std::span<const Gpu> gpus, const PeerMatrix& matrix, int owner,
                            std::size_t bytes) {
    SharedSum result;
    result.devices = matrix.users_of(owner);
    const std::size_t words = bytes / sizeof(std::uint32_t);
    const std::size_t count = result.devices.size();
    const SharedBuffer buffer(owner, bytes, result.devices);
    const Drained before_the_buffer_goes(gpus);

    const auto part = [&](std::size_t which) {
        pattern::Range range = stripe(buffer.base(), words, which, count);
        range.seed = static_cast<std::uint32_t>(result.devices[which]);
        return range;
    };
    const auto gpu = [&](std::size_t which) -> const Gpu& {
        return gpus[static_cast<std::size_t>(result.devices[which])];
    };

    // All write at the same time, each its own stripe; nobody reads before all have written.
    for (std::size_t i = 0; i < count; ++i) {
        pattern::queue_fill(gpu(i), part(i));
    }
    for (std::size_t i = 0; i < count; ++i) {
        gpu(i).wait(fmt::format("the stripe of device {}", gpu(i).ordinal()));
    }
    for (std::size_t i = 0; i < count; ++i) {
        result.sums.push_back(sum(gpu(i), buffer.base(), words));
        const pattern::Range range = part(i);
        for (std::size_t k = 0; k < range.words; ++k) {
            result.expected += pattern::word(range.seed, range.first + k);
        }
    }
    return result;
}

}  // namespace symm
