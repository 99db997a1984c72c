#include "labs/03_ipc/ring.hpp"

#include <stdexcept>

#include "common/pattern/pattern.hpp"

namespace symm {

std::size_t walk_ring(Rank& rank, const SymmetricRange& range) {
    const Gpu gpu(rank.device());
    const std::size_t words = range.size() / sizeof(std::uint32_t);
    const int me = rank.rank();
    const int right = (me + 1) % rank.size();
    const int left = (me + rank.size() - 1) % rank.size();
    // Every writer has its own seed in each round, so old data or another rank's is wrong.
    const auto of = [&](int owner, int writer, int round) -> pattern::Range {
        return {range.peer(owner), words, static_cast<std::uint32_t>(writer + round * kMaxRanks)};
    };
    const auto require = [&](const pattern::Range& expected, int owner) {
        const pattern::Result result = pattern::compare(gpu, expected);
        if (!result.right()) {
            throw std::runtime_error(
                fmt::format("rank {} reads rank {}'s memory: {}", me, owner, result.describe()));
        }
    };
    Bootstrap& bootstrap = rank.bootstrap();
    bootstrap.together("fill", [&] { pattern::fill(gpu, of(me, me, 0)); });
    bootstrap.together("read", [&] { require(of(right, right, 0), right); });
    bootstrap.together("write", [&] { pattern::fill(gpu, of(left, me, 1)); });
    bootstrap.together("check", [&] { require(of(me, right, 1), me); });
    return 2 * words;
}

}  // namespace symm
