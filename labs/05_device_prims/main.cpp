// Lab 05: GPUs that talk. A flag with data behind it, a packet that is both, and a barrier of all
// ranks, in device code, each checked and timed.

#include <fmt/core.h>

#include "common/cli/cli.hpp"
#include "common/cli/table.hpp"
#include "common/cuda/driver.hpp"
#include "labs/03_ipc/ranks.hpp"
#include "labs/05_device_prims/playground.hpp"

namespace {

using namespace symm;

struct Options {
    RankOptions ranks;
    std::uint32_t rounds = 1000;
    unsigned blocks = 2;
    unsigned threads = 32;
};

/// Emulated times say how fast this machine's threads are woken, nothing of a GPU.
std::string time_text(double microseconds) {
    return is_emulated() ? "(emulated)" : fmt::format("{:.2f} us", microseconds);
}

void play(Rank& rank, const Options& options) {
    Playground playground(rank);
    Table table({"what", "checked", "time"});
    const auto row = [&](std::string what, double microseconds) {
        table.add({std::move(what), fmt::format("{} rounds right", options.rounds),
                   time_text(microseconds)});
    };
    if (rank.size() >= 2) {
        for (const Carrier carrier : {Carrier::kRelaxed, Carrier::kSignal, Carrier::kPacket}) {
            row(fmt::format("one way by {}, rank 0 and 1", name_of(carrier)),
                playground.ping_pong(carrier, options.rounds));
            rank.rendezvous().barrier("ping-pong");
        }
    }
    row(fmt::format("barrier of {} ranks, {} blocks of {}", rank.size(), options.blocks,
                    options.threads),
        playground.barriers(options.rounds, options.blocks, options.threads));
    rank.rendezvous().barrier("barriers");
    rank.headline("{}", table.text());
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "Device primitives: signal and wait, packets, and a barrier of all ranks inside a kernel.",
        "05_device_prims");
    Options options;
    std::string mode = "thread";
    app.add_option("--ranks", options.ranks.ranks, "Ranks, 1 to 8; more than GPUs share them")
        ->capture_default_str();
    app.add_option("--mode", mode, "What a rank is: process or thread")->capture_default_str();
    app.add_option("--rounds", options.rounds, "Rounds of each game")
        ->check(CLI::Range(1U, 10'000'000U))
        ->capture_default_str();
    app.add_option("--blocks", options.blocks, "Blocks of the barrier's kernel")
        ->check(CLI::Range(1U, kMaxBarrierBlocks))
        ->capture_default_str();
    app.add_option("--threads", options.threads, "Threads of each block")
        ->check(CLI::Range(1U, 1024U))
        ->capture_default_str();
    add_driver_option(app);
    app.footer(
        "What to look for: a signal that carries data costs two trips, a packet one, and a barrier "
        "of all\n"
        "ranks little more than a signal, since everybody stores at once. SYMM_TIMEOUT sets the "
        "deadline of\n"
        "every wait in seconds.");
    return run_main(app, argc, argv, [&] {
        options.ranks.mode = rank_mode(mode);
        if (options.ranks.ranks < 1 || options.ranks.ranks > kMaxBarrierRanks) {
            throw UsageError(
                fmt::format("--ranks {}: say 1 to {}", options.ranks.ranks, kMaxBarrierRanks));
        }
        return run_ranks(options.ranks, [&](Rank& rank) {
            rank.headline("{}\n", describe_driver());
            play(rank, options);
        });
    });
}
