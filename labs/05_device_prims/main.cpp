// Lab 05: how kernels on different GPUs communicate. A flag that follows data, a packet that is
// both, and a barrier of all ranks, in device code, each checked and timed.

#include <fmt/core.h>

#include "common/cli/cli.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/table.hpp"
#include "labs/05_device_prims/commands.hpp"
#include "labs/05_device_prims/latency_meter.hpp"

namespace {

using namespace symm;

struct Options {
    RankOptions ranks;
    std::uint32_t rounds = 1000;
    unsigned blocks = 2;
    unsigned threads = 32;
};

/// Blocks wait for each other: all ranks' blocks on a device must be resident at once.
void require_resident(const Rank& rank, const Options& options) {
    const unsigned most = LatencyMeter::resident_blocks(options.threads) /
                          static_cast<unsigned>(rank.most_on_a_device());
    if (options.blocks > most) {
        throw UsageError(
            "--blocks {}: device {} keeps {} blocks of {} threads resident at once per "
            "rank. Use fewer blocks or fewer threads",
            options.blocks, rank.device(), most, options.threads);
    }
}

/// Refuses options that a command would ignore.
void require_unused(const CLI::App& app, std::initializer_list<const char*> options) {
    for (const char* option : options) {
        if (app.count(option) != 0) {
            throw UsageError("{} is for the tests without a command: leave it out", option);
        }
    }
}

/// What each rank's flags of the barrier hold, for block 0. Collective.
void show_inboxes(Rank& rank, const LatencyMeter& meter) {
    const auto inboxes = rank.bootstrap().allgather("inbox", meter.inbox());
    TableRows table{{"flags of block 0"}};
    for (int peer = 0; peer < rank.size(); ++peer) {
        table[0].push_back(fmt::format("from {}", peer));
    }
    for (std::size_t r = 0; r < inboxes.size(); ++r) {
        table.push_back({fmt::format("rank {}", r)});
        for (std::size_t peer = 0; peer < inboxes.size(); ++peer) {
            table.back().push_back(peer == r ? "-" : std::to_string(inboxes[r][peer]));
        }
    }
    rank.headline("\nEach barrier stores its number into all peers' flags, and clears none:\n\n{}",
                  table_text(table));
}

void run(Rank& rank, const Options& options) {
    LatencyMeter meter(rank);
    TableRows table{{"what", "checked", "time"}};
    const auto row = [&](std::string what, double microseconds) {
        table.push_back({std::move(what), fmt::format("{} rounds right", options.rounds),
                         // Emulated times would show how fast this machine wakes threads.
                         is_emulated() ? "(emulated)" : fmt::format("{:.2f} us", microseconds)});
    };
    if (rank.size() >= 2) {
        meter.ping_pong(Carrier::kPacket,
                        1);  // the first launch loads the kernel: it is not timed
        for (const Carrier carrier : {Carrier::kRelaxed, Carrier::kSignal, Carrier::kPacket}) {
            row(fmt::format("one way by {}, rank 0 and 1", name_of(carrier)),
                meter.ping_pong(carrier, options.rounds));
            rank.bootstrap().barrier("ping-pong");
        }
    }
    meter.barriers(1, options.blocks, options.threads);
    row(fmt::format("barrier of {} ranks, {} blocks of {}", rank.size(), options.blocks,
                    options.threads),
        meter.barriers(options.rounds, options.blocks, options.threads));
    rank.bootstrap().barrier("barriers");
    rank.headline("{}", table_text(table));
    show_inboxes(rank, meter);
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "Device primitives: signal and wait, packets, and a barrier of all ranks inside a kernel.",
        "05_device_prims");
    Options options;
    add_rank_options(app, options.ranks, kMaxBarrierRanks);
    add_number_option(app, "--rounds", options.rounds, 1U, 10'000'000U, "Rounds of each test");
    add_number_option(app, "--blocks", options.blocks, 1U, kMaxBarrierBlocks,
                      "Blocks of the barrier's kernel");
    add_number_option(app, "--threads", options.threads, 1U, 1024U, "Threads of each block");
    app.footer(
        "What to look for: data followed by a signal takes two trips over the link, a packet one.\n"
        "A barrier of all ranks takes only a little longer than a signal, since all ranks store\n"
        "at the same time. SYMM_TIMEOUT is the limit of every wait, in seconds.");
    const auto run_kernels = add_kernels_command(app);
    const auto run_ring = add_ring_command(app);
    app.require_subcommand(0, 1);
    return run_main(app, argc, argv, [&] {
        if (app.got_subcommand("kernels")) {
            require_unused(app, {"--ranks", "--mode", "--rounds", "--blocks", "--threads"});
            return run_kernels();
        }
        if (app.got_subcommand("ring")) {
            require_unused(app, {"--rounds", "--blocks", "--threads"});
            return run_ring(options.ranks);
        }
        return run_ranks(options.ranks, [&](Rank& rank) {
            require_resident(rank, options);
            rank.headline("{}\n", describe_driver());
            run(rank, options);
        });
    });
}
