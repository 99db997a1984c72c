// 03_ipc: memory that leaves a process. walk() tells the story, in seven steps.

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/cli/bytes.hpp"
#include "common/cli/cli.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/rank_options.hpp"
#include "labs/03_ipc/dma_buf.hpp"
#include "labs/03_ipc/legacy_ipc.hpp"
#include "labs/03_ipc/ordered_sum.hpp"
#include "labs/03_ipc/ring.hpp"
#include "labs/03_ipc/set_up_time.hpp"
#include "labs/03_ipc/shared_array.hpp"
#include "labs/03_ipc/symmetric_range.hpp"

namespace {

using namespace symm;

struct Options {
    RankOptions ranks;
    std::size_t bytes = 1 << 20;
    bool sum = false;
    bool set_up = false;
};

void check_options(const Rank& rank, const Options& options) {
    if (options.sum && options.set_up) {
        throw UsageError("--sum and --setup are two runs: type one of them");
    }
    if (options.bytes < 8 || options.bytes % 8 != 0) {
        throw UsageError(fmt::format(
            "--bytes {} is not a multiple of 8: type, for example, --bytes 1M", options.bytes));
    }
    const std::size_t memory = rank.gpu().total_memory();
    if (options.bytes > memory) {
        throw UsageError(
            fmt::format("--bytes {} is more than the {} of device {}: type a smaller size",
                        format_bytes(options.bytes), format_bytes(memory), rank.device()));
    }
}

// Prints a line of every rank, in the order of ranks.
void in_order(Rank& rank, const char* name, const std::string& line) {
    for (int turn = 0; turn < rank.size(); ++turn) {
        if (turn == rank.rank()) {
            rank.say("{}", line);
        }
        rank.bootstrap().barrier(name);
    }
}

void walk(Rank& rank, const Options& options) {
    rank.headline("1. The ranks have met. Ranks: {}, mode: {}", rank.size(), name_of(rank.mode()));
    in_order(rank, "introduction",
             fmt::format("pid {}, GPU {} ({})", ::getpid(), rank.device(), rank.gpu().name()));

    rank.headline("\n2. One handle, by hand: rank 0's memory, exported, sent, imported, mapped");
    {
        const SharedArray array(rank, 0, options.bytes);
        in_order(rank, "handle", array.story());
    }

    rank.headline("\n3. Which kind of handle do all ranks have?");
    const HandleChoice choice = agree_on_handle_kind(rank);
    rank.headline("{}", name_of(choice.kind));
    if (!choice.why_not_fabric.empty()) {
        rank.headline("not FABRIC: {}", choice.why_not_fabric);
    }

    const SymmetricRange range(rank, options.bytes);
    rank.headline("\n4. The symmetric range: {} per rank, {} from one to the next",
                  format_bytes(range.size()), format_bytes(range.stride()));
    std::string addresses = fmt::format("rank 0 at {:#x}", range.base());
    for (int peer = 1; peer < rank.size(); ++peer) {
        addresses += fmt::format(", rank {} at {:#x}", peer, range.peer(peer));
    }
    in_order(rank, "range", addresses);

    rank.headline(
        "\n5. A ring: each rank reads its right neighbour's memory and writes its left one's");
    in_order(rank, "ring", fmt::format("{} words compared, all right", walk_ring(rank, range)));

    rank.headline("\n6. A dma-buf: a file descriptor for other drivers");
    DmaBufReport dma_buf;
    rank.bootstrap().together("dma-buf", [&] {
        dma_buf = try_dma_buf(range.local(), std::min<std::size_t>(range.stride(), 2 << 20));
    });
    in_order(rank, "dma-buf", dma_buf.text);

    rank.headline("\n7. The older cuIpc handles");
    in_order(rank, "legacy", walk_legacy_ipc(rank, range.local()));
    rank.headline("\nAll checked and right.");
}

// Rank 0 fills an array of doubles; every rank sums it with a kernel on its own GPU.
void sum(Rank& rank, const Options& options) {
    const std::size_t count = options.bytes / sizeof(double);
    const SharedArray array(rank, 0, options.bytes);
    double expected = 0;
    rank.bootstrap().together("fill", [&] {
        if (rank.rank() == 0) {
            std::vector<double> values(count);
            for (std::size_t i = 0; i < count; ++i) {
                values[i] = sum_example(i);
            }
            copy_to_device(array.base(), values.data(), options.bytes);
            expected = ordered_sum(values);
        }
    });
    expected = rank.bootstrap().allgather("expected", expected)[0];
    double result = 0;
    rank.bootstrap().together("sum", [&] {
        result = ordered_sum(Gpu(rank.device()), array.base(), count);
        if (std::memcmp(&result, &expected, sizeof(result)) != 0) {
            throw std::runtime_error(
                fmt::format("the sum is {:.17g} ({:a}), the host's is {:.17g} ({:a})", result,
                            result, expected, expected));
        }
    });
    in_order(rank, "sum",
             fmt::format("GPU {}: {} doubles, {}; sum {:.17g} ({:a})", rank.device(), count,
                         array.story(), result, result));
    rank.headline("All {} sums equal the host's to the last bit.", rank.size());
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "Lab 03: memory that leaves a process. Ranks send each other handles of their GPUs' "
        "memory,\n"
        "map all of it side by side, and read and write it. Prints what each rank does, with file\n"
        "descriptors and addresses.",
        "03_ipc");
    Options options;
    add_rank_options(app, options.ranks);
    add_bytes_option(app, "--bytes", options.bytes, "Memory of each rank, a multiple of 8");
    app.add_flag("--sum", options.sum,
                 "Instead: rank 0 fills doubles, every rank sums them on its GPU");
    app.add_flag("--setup", options.set_up, "Instead: time the set-up, beside NCCL's");
    return run_main(app, argc, argv, [&] {
        return run_ranks(options.ranks, [&](Rank& rank) {
            check_options(rank, options);
            rank.headline("{}", describe_driver());
            if (options.set_up) {
                time_set_up(rank, options.bytes, 3);
            } else if (options.sum) {
                sum(rank, options);
            } else {
                walk(rank, options);
            }
        });
    });
}
