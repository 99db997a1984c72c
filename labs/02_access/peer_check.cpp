#include "labs/02_access/peer_check.hpp"

#include <fmt/core.h>

#include <array>

#include "common/cuda/check.hpp"
#include "common/test_pattern/test_pattern.hpp"
#include "labs/02_access/access.hpp"

namespace symm {

std::string check_pair(const Gpu& accessor, const Gpu& owner, std::size_t bytes) {
    const Pair pair{accessor.ordinal(), owner.ordinal()};
    const SharedBuffer remote(pair.owner, bytes, std::array{pair.accessor});
    const DeviceBuffer local(pair.accessor, bytes);
    const Drained accessor_first(accessor);
    const Drained owner_first(owner);
    // Each step of each pair has its own seed.
    const auto data = [&](CUdeviceptr at, std::uint32_t step) {
        return test_pattern::Range{at, bytes / sizeof(std::uint32_t),
                                   0x10000u * static_cast<std::uint32_t>(pair.accessor + 1) +
                                       0x100u * static_cast<std::uint32_t>(pair.owner + 1) + step};
    };
    const auto failure = [&](const char* what, const Gpu& reader, std::uint32_t step) {
        const test_pattern::Result result =
            test_pattern::compare(reader, data(remote.base(), step));
        return result.right() ? "" : fmt::format("{}: {}", what, result.describe());
    };

    constexpr unsigned char kPoison = 0xA5;
    owner.make_current();
    cu_check(cuMemsetD8Async(remote.base(), kPoison, bytes, owner.stream()),
             "cuMemsetD8Async(address={:#x}, size={}, device={})", remote.base(), bytes,
             pair.owner);
    owner.wait(fmt::format("the poison on device {}", pair.owner));
    test_pattern::fill(accessor, data(remote.base(), 0));
    if (std::string text = failure("stores of a kernel are lost", owner, 0); !text.empty()) {
        return text;
    }

    test_pattern::fill(owner, data(remote.base(), 1));
    if (std::string text = failure("loads of a kernel return wrong data", accessor, 1);
        !text.empty()) {
        return text;
    }

    test_pattern::fill(accessor, data(local.base(), 2));
    cu_check(cuMemcpyAsync(remote.base(), local.base(), bytes, accessor.stream()),
             "cuMemcpyAsync(device {} to device {}, size={})", pair.accessor, pair.owner, bytes);
    accessor.wait(fmt::format("the copy from device {} to device {}", pair.accessor, pair.owner));
    return failure("copies are lost", owner, 2);
}

std::vector<Pair> check_peers(PeerMatrix& matrix, std::span<const Gpu> gpus, std::size_t bytes) {
    std::vector<Pair> broken;
    for (const Pair& pair : matrix.usable_pairs()) {
        const std::string failure = check_pair(gpus[static_cast<std::size_t>(pair.accessor)],
                                               gpus[static_cast<std::size_t>(pair.owner)], bytes);
        if (!failure.empty()) {
            matrix.exclude(pair, failure);
            broken.push_back(pair);
        }
    }
    return broken;
}

}  // namespace symm
