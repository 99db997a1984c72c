#include "labs/02_access/latency.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <stdexcept>

#include "common/cuda/copy.hpp"
#include "common/cuda/event.hpp"
#include "labs/02_access/access.hpp"
#include "labs/02_access/kernels.hpp"

namespace symm {

std::vector<std::uint32_t> make_chain(std::size_t lines, std::uint32_t seed) {
    // One cycle through all lines in random order: each line points to the one that follows it.
    std::vector<std::uint32_t> order(lines);
    std::iota(order.begin(), order.end(), 0u);
    std::mt19937 random(seed);
    std::shuffle(order.begin() + 1, order.end(), random);  // starts at line 0
    std::vector<std::uint32_t> chain(lines * kWordsOfLine, 0);
    for (std::size_t i = 0; i < lines; ++i) {
        chain[order[i] * kWordsOfLine] =
            static_cast<std::uint32_t>(order[(i + 1) % lines] * kWordsOfLine);
    }
    return chain;
}

double load_latency_ns(const Gpu& accessor, const Gpu& owner, std::size_t lines,
                       std::uint32_t hops) {
    const std::vector<std::uint32_t> chain = make_chain(lines, 0x5eed);
    const std::size_t bytes = chain.size() * sizeof(std::uint32_t);
    const SharedBuffer buffer(owner.ordinal(), bytes, std::array{accessor.ordinal()});
    owner.make_current();
    copy_to_device(buffer.base(), chain.data(), bytes);

    const Drained before_the_buffer_goes(accessor);
    accessor.make_current();
    const Event start;
    const Event end;
    const std::string what = fmt::format("the chain of device {} through memory of device {}",
                                         accessor.ordinal(), owner.ordinal());
    auto* result = static_cast<std::uint32_t*>(accessor.results());
    const auto chase = [&](std::uint32_t count) {
        *result = ~0u;
        start.record(accessor.stream());
        queue_chase(accessor.stream(), buffer.base(), count, result);
        end.record(accessor.stream());
        accessor.wait(what);
        return elapsed_us(start, end);
    };
    chase(1);  // loads the kernel
    const double us = std::min(chase(hops), chase(hops));

    std::uint32_t expected = 0;
    for (std::uint32_t i = 0; i < hops; ++i) {
        expected = chain[expected];
    }
    if (*result != expected) {
        throw std::runtime_error(
            fmt::format("{} ended at word {} instead of {}", what, *result, expected));
    }
    return us * 1e3 / hops;
}

}  // namespace symm
