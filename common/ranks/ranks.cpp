#include "common/ranks/ranks.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "common/cli/cli.hpp"
#include "common/ranks/launcher.hpp"
#include "common/ranks/rank_failure.hpp"
#include "common/ranks/rank_processes.hpp"
#include "common/sys/directory.hpp"
#include "common/sys/process.hpp"
#include "common/sys/remove_on_signal.hpp"

namespace symm {
namespace {

using Body = std::function<void(Rank&)>;

// One rank from the meeting to its end. Returns what went wrong, having told the others.
std::optional<RankFailure> run_rank(const RankInfo& info, RankMode mode, const Body& body) {
    try {
        Rank rank(Bootstrap::join(info), mode);
        try {
            body(rank);
            rank.require_printed();
        } catch (const std::exception& error) {
            rank.bootstrap().fail(error.what());
            throw;
        } catch (...) {
            rank.bootstrap().fail("unknown error");
            throw;
        }
    } catch (...) {
        const RankFailure failure = failure_of(info.rank, std::current_exception());
        if (!failure.usage) {  // bad usage is told once, by the process that started the ranks
            print_lines(STDERR_FILENO, fmt::format("[{}] ", info.rank), "error: " + failure.text);
        }
        return failure;
    }
    return {};
}

// A process that is one rank of a run.
int run_placed(const Placement& place, const Body& body) {
    static std::atomic<bool> has_run = false;
    if (has_run.exchange(true)) {
        throw std::logic_error("run_ranks() in process mode works once in a program");
    }
    if (place.is_copy()) {
        die_with_parent(place.parent);
    } else {
        const SignalsHeld until_announced;
        make_private(place.directory);
        remove_on_signal(place.directory, OnSignal::kRemoveOne);  // launchers end ranks by SIGTERM
    }
    const auto failure =
        run_rank({place.rank, place.size, place.directory, place.run}, RankMode::kProcess, body);
    if (!place.is_copy()) {
        // Empty by now, or still needed by the others: then they remove it.
        std::error_code ignored;
        std::filesystem::remove(place.directory, ignored);
        keep_on_signal(place.directory);
    }
    if (!failure) {
        return kExitRight;
    }
    if (place.is_copy()) {
        leave_note(place.directory, *failure);
    } else if (failure->usage) {
        print_lines(STDERR_FILENO, fmt::format("[{}] ", place.rank), "error: " + failure->text);
    }
    return failure->usage ? kExitUsage : kExitFailed;
}

std::vector<RankFailure> run_threads(int ranks, const Body& body) {
    constexpr std::uint64_t kRun = 1;  // the directory is this run's alone
    const PrivateDirectory directory("symm-ranks-");
    std::mutex mutex;
    std::vector<RankFailure> failures;
    // Contexts outlive all ranks: else each that ends last on its device takes the context with it, and
    // the next one makes it anew, for most of a second.
    std::vector<Device> kept;
    std::vector<std::jthread> threads;  // joined before what they use goes
    for (int rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            if (auto failure = run_rank({rank, ranks, directory.path(), kRun}, RankMode::kThread,
                                        [&](Rank& self) {
                                            {
                                                const std::lock_guard lock(mutex);
                                                kept.emplace_back(self.device());
                                            }
                                            body(self);
                                        })) {
                const std::lock_guard lock(mutex);
                failures.push_back(*failure);
            }
        });
    }
    threads.clear();
    return failures;
}

}  // namespace

int run_ranks(const RankOptions& options, const Body& body) {
    if (const auto place = placement_from_environment()) {
        return run_placed(*place, body);
    }
    if (options.ranks < 1 || options.ranks > kMaxRanks) {
        throw UsageError(fmt::format("--ranks {} is not possible: type a number from 1 to {}",
                                     options.ranks, kMaxRanks));
    }
    const auto failures = options.mode == RankMode::kProcess
                              ? run_copies(options.ranks, options.command)
                              : run_threads(options.ranks, body);
    if (!failures.empty()) {
        throw_cause(failures);
    }
    return kExitRight;
}

}  // namespace symm
