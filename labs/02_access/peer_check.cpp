#include "labs/02_access/peer_check.hpp"

#include <fmt/core.h>

#include <array>

#include "common/cuda/check.hpp"
#include "common/pattern/pattern.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/02_access/kernels.hpp"
#include "labs/02_access/shared_buffer.hpp"

namespace symm {
namespace {

constexpr unsigned char kPoison = 0xA5;

/// A seed that no other pair and no other step of this pair has.
std::uint32_t seed_of(const Pair& pair, std::uint32_t step) {
    return 0x10000u * static_cast<std::uint32_t>(pair.accessor + 1) +
           0x100u * static_cast<std::uint32_t>(pair.owner + 1) + step;
}

void poison(const Gpu& gpu, CUdeviceptr at, std::size_t bytes) {
    gpu.make_current();
    cu_check(cuMemsetD8Async(at, kPoison, bytes, gpu.stream()),
             "cuMemsetD8Async(address={:#x}, size={}, device={})", at, bytes, gpu.ordinal());
    gpu.wait(fmt::format("poison on device {}", gpu.ordinal()));
}

}  // namespace

PeerReport check_pair(const Gpu& accessor, const Gpu& owner, std::size_t bytes) {
    const Pair pair{accessor.ordinal(), owner.ordinal()};
    const std::size_t words = bytes / sizeof(std::uint32_t);
    const std::array users{pair.accessor};
    const SharedBuffer remote(pair.owner, bytes, users);
    const DeviceBuffer local(pair.accessor, bytes);
    const Drained accessor_first(accessor);
    const Drained owner_first(owner);
    const auto part = [&](CUdeviceptr at, std::uint32_t step) {
        return pattern::Range{at, words, seed_of(pair, step)};
    };
    const auto fill = [&](const Gpu& gpu, const pattern::Range& range) {
        pattern::fill(gpu, range);
    };
    const auto failed = [&](const char* what, const pattern::Result& verdict) {
        return PeerReport{pair, fmt::format("{}: {}", what, verdict.describe())};
    };

    poison(owner, remote.base(), bytes);
    fill(accessor, part(remote.base(), 0));
    if (const pattern::Result v = pattern::compare(owner, part(remote.base(), 0)); !v.right()) {
        return failed("stores of a kernel are lost", v);
    }

    fill(owner, part(remote.base(), 1));
    if (const pattern::Result v = pattern::compare(accessor, part(remote.base(), 1)); !v.right()) {
        return failed("loads of a kernel read something else", v);
    }

    fill(accessor, part(local.base(), 2));
    cu_check(cuMemcpyAsync(remote.base(), local.base(), bytes, accessor.stream()),
             "cuMemcpyAsync(device {} to device {}, size={})", pair.accessor, pair.owner, bytes);
    accessor.wait(fmt::format("the copy of device {} to device {}", pair.accessor, pair.owner));
    if (const pattern::Result v = pattern::compare(owner, part(remote.base(), 2)); !v.right()) {
        return failed("copies are lost", v);
    }
    return {pair, {}};
}

std::vector<PeerReport> check_peers(PeerMatrix& matrix, std::span<const Gpu> gpus,
                                    std::size_t bytes) {
    std::vector<PeerReport> reports;
    for (const Pair& pair : matrix.usable_pairs()) {
        reports.push_back(check_pair(gpus[static_cast<std::size_t>(pair.accessor)],
                                     gpus[static_cast<std::size_t>(pair.owner)], bytes));
        if (!reports.back().right()) {
            matrix.exclude(pair, reports.back().failure);
        }
    }
    return reports;
}

}  // namespace symm
