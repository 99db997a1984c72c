// Lab 05: GPUs that talk. A flag with data behind it, a packet that is both, and a barrier of all
// ranks, in device code, each checked and timed.

#include <fmt/core.h>

#include "common/cli/cli.hpp"
#include "common/cli/table.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/05_device_prims/latency_test.hpp"

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

/// A block that is not resident cannot come to the barrier, where all wait for it.
void require_resident(const Rank& rank, const Options& options) {
    const int most = rank.gpu().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
                     rank.gpu().attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) /
                     rank.most_on_a_device();
    if (options.blocks * options.threads > static_cast<unsigned>(most)) {
        throw UsageError(
            fmt::format("--blocks {} of --threads {} are more than the {} threads that device {} "
                        "keeps at once for a rank: say less of one",
                        options.blocks, options.threads, most, rank.device()));
    }
}

void play(Rank& rank, const Options& options) {
    LatencyTest latency_test(rank);
    Table table({"what", "checked", "time"});
    const auto row = [&](std::string what, double microseconds) {
        table.add({std::move(what), fmt::format("{} rounds right", options.rounds),
                   time_text(microseconds)});
    };
    if (rank.size() >= 2) {
        for (const Carrier carrier : {Carrier::kRelaxed, Carrier::kSignal, Carrier::kPacket}) {
            row(fmt::format("one way by {}, rank 0 and 1", name_of(carrier)),
                latency_test.ping_pong(carrier, options.rounds));
            rank.bootstrap().barrier("ping-pong");
        }
    }
    row(fmt::format("barrier of {} ranks, {} blocks of {}", rank.size(), options.blocks,
                    options.threads),
        latency_test.barriers(options.rounds, options.blocks, options.threads));
    rank.bootstrap().barrier("barriers");
    rank.headline("{}", table.text());
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "Device primitives: signal and wait, packets, and a barrier of all ranks inside a kernel.",
        "05_device_prims");
    Options options;
    std::string mode = "thread";
    add_number_option(app, "--ranks", options.ranks.ranks, 1, kMaxBarrierRanks,
                      "Ranks, 1 to 8; more than GPUs share them");
    app.add_option("--mode", mode, "What a rank is: process or thread")->capture_default_str();
    add_number_option(app, "--rounds", options.rounds, 1U, 10'000'000U, "Rounds of each game");
    add_number_option(app, "--blocks", options.blocks, 1U, kMaxBarrierBlocks,
                      "Blocks of the barrier's kernel");
    add_number_option(app, "--threads", options.threads, 1U, 1024U, "Threads of each block");
    add_driver_option(app);
    app.footer(
        "What to look for: a signal that carries data costs two trips, a packet one, and a barrier "
        "of all\n"
        "ranks little more than a signal, since everybody stores at once. SYMM_TIMEOUT sets the "
        "deadline of\n"
        "every wait in seconds.");
    return run_main(app, argc, argv, [&] {
        options.ranks.mode = rank_mode(mode);
        return run_ranks(options.ranks, [&](Rank& rank) {
            require_resident(rank, options);
            rank.headline("{}\n", describe_driver());
            play(rank, options);
        });
    });
}
