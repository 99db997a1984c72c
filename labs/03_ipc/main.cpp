// 03_ipc: memory that leaves a process.

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/cli/bytes.hpp"
#include "common/cli/cli.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/dma_buf.hpp"
#include "labs/03_ipc/legacy_ipc.hpp"
#include "labs/03_ipc/ring.hpp"
#include "labs/03_ipc/set_up_time.hpp"
#include "labs/03_ipc/shared_array.hpp"
#include "labs/03_ipc/sum.hpp"
#include "labs/03_ipc/symmetric_range.hpp"

namespace {

using namespace symm;

struct Options {
    RankOptions ranks{2, RankMode::kProcess, {}};
    std::size_t bytes = 1 << 20;
    bool sum = false;
    bool set_up = false;
};

void require_sense(Rank& rank, const Options& options) {
    if (options.sum && options.set_up) {
        throw UsageError("--sum and --setup are two runs: type one of them");
    }
    if (options.bytes < 8 || options.bytes % 8 != 0) {
        throw UsageError(
            fmt::format("--bytes {} is no multiple of 8: type --bytes 1M, for one", options.bytes));
    }
    const std::size_t memory = rank.gpu().total_memory();
    if (options.bytes > memory) {
        throw UsageError(
            fmt::format("--bytes {} is more than the {} of device {}: type a smaller size",
                        format_bytes(options.bytes), format_bytes(memory), rank.device()));
    }
}

// Prints a line of every rank, in their order.
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
    rank.headline("\n4. The symmetric range: {} a rank, {} from one to the next",
                  format_bytes(range.size()), format_bytes(range.stride()));
    std::string addresses;
    for (int peer = 0; peer < rank.size(); ++peer) {
        addresses +=
            fmt::format("{}rank {} at {:#x}", peer == 0 ? "" : ", ", peer, range.peer(peer));
    }
    in_order(rank, "range", addresses);

    rank.headline("\n5. A ring: each reads its right neighbour's memory and writes its left one's");
    in_order(rank, "ring", fmt::format("{} words compared, all right", walk_ring(rank, range)));

    rank.headline("\n6. A dma-buf: the kernel's own handle");
    std::string dma_buf;
    rank.bootstrap().together("dma-buf", [&] {
        const DmaBufReport report =
            try_dma_buf(range.local(), std::min<std::size_t>(range.stride(), 2 << 20));
        if (report.mapped && !report.equal) {
            throw std::runtime_error(report.text);
        }
        dma_buf = report.text;
    });
    in_order(rank, "dma-buf", dma_buf);

    rank.headline("\n7. The older cuIpc handles");
    in_order(rank, "legacy", walk_legacy_ipc(rank, range.local()));
    rank.headline("\nAll checked and right.");
}

// A master fills an array of doubles; every rank sums it with a kernel on its own GPU.
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
            expected = sum_doubles(values);
        }
    });
    double mine = 0;
    rank.bootstrap().together("sum",
                              [&] { mine = sum_doubles(Gpu(rank.device()), array.base(), count); });
    in_order(rank, "sum",
             fmt::format("GPU {}: {} doubles, {}; sum {:.17g} ({:a})", rank.device(), count,
                         array.story(), mine, mine));
    expected = rank.bootstrap().allgather("expected", expected)[0];
    rank.bootstrap().together("compare", [&] {
        if (std::memcmp(&mine, &expected, sizeof(mine)) != 0) {
            throw std::runtime_error(
                fmt::format("the sum is {:.17g} ({:a}), the host's {:.17g} ({:a})", mine, mine,
                            expected, expected));
        }
    });
    rank.headline("All {} sums equal the host's to the last bit.", rank.size());
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "Lab 03: memory that leaves a process. Ranks meet, send each other handles of their GPUs' "
        "memory, map\n"
        "it side by side, and read and write it. Prints who did what, with descriptors and "
        "addresses.",
        "03_ipc");
    Options options;
    std::string mode(name_of(options.ranks.mode));
    add_number_option(app, "--ranks", options.ranks.ranks, 1, kMaxRanks, "How many ranks, 1 to 64");
    app.add_option("--mode", mode, "What a rank is: thread or process")->capture_default_str();
    add_bytes_option(app, "--bytes", options.bytes, "Memory of each rank, a multiple of 8");
    app.add_flag("--sum", options.sum,
                 "Instead: rank 0 fills doubles, every rank sums them on its GPU");
    app.add_flag("--setup", options.set_up, "Instead: time the set-up, beside NCCL's");
    add_driver_option(app);
    return run_main(app, argc, argv, [&] {
        options.ranks.mode = rank_mode(mode);
        return run_ranks(options.ranks, [&](Rank& rank) {
            require_sense(rank, options);
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
