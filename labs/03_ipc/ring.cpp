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
    // Unique to the writer and the round, so that stale or misplaced data cannot pass.
    const auto first = [](int writer) { return static_cast<std::uint32_t>(writer); };
    const auto second = [](int writer) { return static_cast<std::uint32_t>(writer + kMaxRanks); };
    const auto require = [&](int owner, std::uint32_t seed, const char* what) {
        const pattern::Result verdict = pattern::compare(gpu, {range.peer(owner), words, seed});
        if (!verdict.right()) {
            throw std::runtime_error(fmt::format("rank {} {} rank {}'s memory: {}", me, what, owner,
                                                 verdict.describe()));
        }
    };
    Bootstrap& meeting = rank.bootstrap();
    meeting.together("fill", [&] { pattern::fill(gpu, {range.local(), words, first(me)}); });
    meeting.together("read", [&] { require(right, first(right), "reads"); });
    meeting.together("write", [&] { pattern::fill(gpu, {range.peer(left), words, second(me)}); });
    meeting.together("check", [&] { require(me, second(right), "checks"); });
    return 2 * words;
}

}  // namespace symm
