// 03_ipc: memory that leaves a process. walk() tells the story, in seven steps.

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "common/cli/cli.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/bytes.hpp"
#include "common/test_pattern/test_pattern.hpp"
#include "labs/03_ipc/dma_buf.hpp"
#include "labs/03_ipc/handle_kind.hpp"
#include "labs/03_ipc/legacy_ipc.hpp"
#include "labs/03_ipc/shared_array.hpp"
#include "labs/03_ipc/symmetric_range.hpp"

namespace {

using namespace symm;

void check_bytes(const Rank& rank, std::size_t bytes) {
    if (bytes < 4 || bytes % 4 != 0) {
        throw UsageError(
            "--bytes {} is not a positive multiple of 4; pass, for example, --bytes 1M", bytes);
    }
    const std::size_t memory = rank.gpu().total_memory();
    if (bytes > memory) {
        throw UsageError("--bytes {} is more than the {} of device {}: pass a smaller size",
                         format_bytes(bytes), format_bytes(memory), rank.device());
    }
}

// Reads the memory of rank `owner` with a kernel on this rank's GPU. Returns what the kernel found;
// throws if a word is wrong.
std::string compare(const Rank& rank, int owner, const test_pattern::Range& expected) {
    const test_pattern::Result result = test_pattern::compare(Gpu(rank.device()), expected);
    if (!result.right()) {
        throw std::runtime_error(fmt::format("rank {} reads rank {}'s memory: {}", rank.rank(),
                                             owner, result.describe()));
    }
    return result.describe();
}

void share_array(Rank& rank, std::size_t bytes) {
    const SharedArray array(rank, 0, bytes);
    const test_pattern::Range words{array.base(), bytes / 4, 1};
    rank.bootstrap().together("fill", [&] {
        if (rank.rank() == 0) {
            test_pattern::fill(Gpu(rank.device()), words);
        }
    });
    const std::string found =
        rank.bootstrap().together("read", [&] { return compare(rank, 0, words); });
    rank.say_in_order(array.story() + ": " + found);
}

void walk_ring(Rank& rank, const SymmetricRange& range) {
    const int me = rank.rank();
    const int right = (me + 1) % rank.size();
    const int left = (me + rank.size() - 1) % rank.size();
    // Every writer has its own seed in each round: old data and another rank's data count as wrong.
    const auto words = [&](int owner, int writer, int round) -> test_pattern::Range {
        return {range.peer(owner), range.size() / 4,
                static_cast<std::uint32_t>(writer + round * kMaxRanks)};
    };
    const Gpu gpu(rank.device());
    Bootstrap& bootstrap = rank.bootstrap();
    bootstrap.together("fill", [&] { test_pattern::fill(gpu, words(me, me, 0)); });
    bootstrap.together("read", [&] { compare(rank, right, words(right, right, 0)); });
    bootstrap.together("write", [&] { test_pattern::fill(gpu, words(left, me, 1)); });
    // This rank is its right neighbour's left neighbour, so the right neighbour has written here.
    const std::string found =
        bootstrap.together("check", [&] { return compare(rank, me, words(me, right, 1)); });
    rank.say_in_order(
        fmt::format("read from rank {}, written by rank {}: {}", right, right, found));
}

void walk(Rank& rank, std::size_t bytes) {
    rank.headline("1. The ranks have met. Ranks: {}, mode: {}", rank.size(), name_of(rank.mode()));
    rank.say_in_order(
        fmt::format("pid {}, GPU {} ({})", ::getpid(), rank.device(), rank.gpu().name()));

    rank.headline("\n2. One handle, by hand: rank 0's memory, exported, sent, imported, mapped");
    share_array(rank, bytes);

    rank.headline("\n3. Which kind of handle do all ranks have?");
    const HandleChoice choice = agree_on_handle_kind(rank);
    rank.headline("{}", choice.why_not_fabric.empty()
                            ? "FABRIC"
                            : "POSIX file descriptor\nnot FABRIC: " + choice.why_not_fabric);

    // SymmetricRange agrees on a kind again by itself. For ranks that are threads it needs no
    // handles.
    const SymmetricRange range(rank, bytes);
    rank.headline("\n4. The symmetric range: {} per rank, a stride of {}",
                  format_bytes(range.size()), format_bytes(range.stride()));
    std::string addresses = fmt::format("rank 0 at {:#x}", range.base());
    for (int peer = 1; peer < rank.size(); ++peer) {
        addresses += fmt::format(", rank {} at {:#x}", peer, range.peer(peer));
    }
    rank.say_in_order(addresses);

    rank.headline(
        "\n5. A ring: each rank reads its right neighbour's memory and writes its left one's");
    walk_ring(rank, range);

    rank.headline("\n6. A dma-buf: a file descriptor for other drivers");
    rank.say_in_order(rank.bootstrap().together("dma-buf", [&] {
        return try_dma_buf(range.local(), std::min<std::size_t>(range.stride(), 2 << 20));
    }));

    rank.headline("\n7. The older cuIpc handles");
    rank.say_in_order(walk_legacy_ipc(rank, range.local()));
    rank.headline("\nAll checks passed.");
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "Lab 03: memory that leaves a process. Ranks send each other handles of their GPUs' "
        "memory,\n"
        "map all of it side by side, and read and write it.",
        "03_ipc");
    RankOptions ranks;
    std::size_t bytes = 1 << 20;
    add_rank_options(app, ranks);
    add_bytes_option(app, "--bytes", bytes, "Memory of each rank, a multiple of 4");
    return run_main(app, argc, argv, [&] {
        return run_ranks(ranks, [&](Rank& rank) {
            check_bytes(rank, bytes);
            rank.headline("{}", describe_driver());
            walk(rank, bytes);
        });
    });
}
