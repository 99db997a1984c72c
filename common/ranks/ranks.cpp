#include "common/ranks/ranks.hpp"

#include <cxxabi.h>
#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/ranks/launcher_environment.hpp"
#include "common/ranks/rank_failure.hpp"
#include "common/ranks/spawn.hpp"
#include "common/sys/closed_on_fork.hpp"
#include "common/sys/log.hpp"
#include "common/sys/print.hpp"
#include "common/sys/refuse_unless.hpp"
#include "common/sys/system_error.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

using Body = std::function<void(Rank&)>;

using MakeBootstrap = std::function<std::unique_ptr<Bootstrap>()>;

void print_error(int rank, std::string_view text) {
    print_lines(STDERR_FILENO, fmt::format("[{}] ", rank), fmt::format("error: {}", text));
}

// Takes the failure of a rank that does not return.
using Take = std::function<void(const RankFailure&)>;

// Runs one rank from joining to its end. If it fails, returns the reason, after the other ranks
// have been told. pthread_exit() unwinds the thread by an exception that has to be passed on: then
// `take` gets the reason.
std::optional<RankFailure> run_rank(int number, RankMode mode, const RankOptions& options,
                                    const Body& body, const MakeBootstrap& make, const Take& take) {
    constexpr const char* kThreadExit = "it called pthread_exit(), or its thread was cancelled";
    try {
        const auto device = options.device ? std::optional(options.device(number)) : std::nullopt;
        Rank rank(make(), mode, device);
        try {
            body(rank);
            rank.require_printed();
        } catch (const std::exception& error) {
            rank.bootstrap().fail(error.what());
            throw;
        } catch (const abi::__forced_unwind&) {
            rank.bootstrap().fail(kThreadExit);
            throw;
        } catch (...) {
            rank.bootstrap().fail("unknown error");
            throw;
        }
        return {};
    } catch (const abi::__forced_unwind&) {
        const RankFailure failure =
            failure_now(number, fmt::format("rank {} failed: {}", number, kThreadExit));
        print_error(number, failure.text);
        take(failure);
        throw;
    } catch (...) {
        RankFailure failure = failure_of(number, std::current_exception());
        if (!failure.usage) {  // bad usage is reported once, by the process that started the ranks
            print_error(number, failure.text);
        }
        return failure;
    }
}

// Whether this process has been a rank of a run, which it can be only once.
std::atomic<bool> has_been_a_rank = false;

int exit_code(const std::optional<RankFailure>& failure) {
    return !failure ? kExitRight : failure->usage ? kExitUsage : kExitFailed;
}

int run_spawned(const SpawnedRank& self, const RankOptions& options, const Body& body) {
    has_been_a_rank = true;
    const ClosedOnFork not_for_children({&self.parent, 1});  // else they would report their end
    const auto failure = run_rank(
        self.rank, RankMode::kProcess, options, body,
        [&] { return std::make_unique<SocketBootstrap>(self.rank, self.size, self.connections()); },
        [&](const RankFailure& failure) {
            report(self.parent.get(), failure);
            std::exit(kExitFailed);
        });
    report(self.parent.get(), failure);
    return exit_code(failure);
}

// The variables may be left over: those of a batch job's shell, or of a container.
void warn_of_ignored(const Placement& place, const RankOptions& options) {
    // The default number of ranks was probably not asked for. But one rank shows little.
    const bool ranks_asked = options.ranks != RankOptions{}.ranks || place.size == 1;
    if (place.rank == 0 &&
        ((ranks_asked && options.ranks != place.size) || options.mode != RankMode::kProcess)) {
        log::warn(
            "--ranks {} --mode {} is ignored: {} made this process rank {} of {} ({}). Set "
            "SYMM_LAUNCHER=none to ignore the launcher instead",
            options.ranks, name_of(options.mode), place.launcher, place.rank, place.size,
            place.variables);
    }
}

// join(), with an error that says who this process takes itself for.
std::unique_ptr<Bootstrap> join_launched(const Placement& place) {
    try {
        return join(place.rank, place.size, place.name);
    } catch (const BootstrapError& error) {
        throw BootstrapError(error.rank(), error.remote(),
                             "{}. This process is a rank because of {}: set "
                             "SYMM_LAUNCHER=none if {} did not start it",
                             error.what(), place.variables, place.launcher);
    }
}

int run_launched(const Placement& place, const RankOptions& options, const Body& body) {
    has_been_a_rank = true;
    warn_of_ignored(place, options);
    const auto failure = run_rank(
        place.rank, RankMode::kProcess, options, body, [&] { return join_launched(place); },
        [](const RankFailure&) { std::exit(kExitFailed); });
    if (failure && failure->usage) {
        print_error(place.rank, failure->text);
    }
    return exit_code(failure);
}

std::vector<RankFailure> run_threads(const RankOptions& options, const Body& body) {
    auto connections = connected_sockets(options.ranks);
    std::mutex mutex;  // guards these two
    std::vector<RankFailure> failures;
    // Keeps the contexts until all ranks have ended. Else the last rank on a device would destroy
    // its context, and a later rank would create a new one, which takes most of a second.
    std::vector<Device> kept;
    const auto keep_and_run = [&](Rank& rank) {
        {
            const std::lock_guard lock(mutex);
            kept.emplace_back(rank.device());
        }
        body(rank);
    };
    const auto take = [&](const RankFailure& failure) {
        const std::lock_guard lock(mutex);
        failures.push_back(failure);
    };
    const auto run = [&](int rank, Connections own) {
        const auto make = [&] {
            return std::make_unique<SocketBootstrap>(rank, options.ranks, std::move(own));
        };
        if (const auto failure =
                run_rank(rank, RankMode::kThread, options, keep_and_run, make, take)) {
            take(*failure);
        }
    };
    std::vector<std::jthread> threads;  // joined before what they use is destroyed
    try {
        for (Connections& own : connections) {
            threads.emplace_back(run, static_cast<int>(threads.size()), std::move(own));
        }
    } catch (const std::system_error& error) {
        connections.clear();  // ranks that have started then find the others gone
        threads.clear();
        throw_system_error(error.code().value(), "starting a thread for each rank");
    }
    threads.clear();
    return failures;
}

}  // namespace

int run_ranks(const RankOptions& options, const Body& body) {
    require_known(options.mode);
    refuse_unless(static_cast<bool>(body), "run_ranks() needs a body, which each rank runs");
    if (has_been_a_rank) {
        throw std::logic_error("run_ranks() in process mode works only once per program");
    }
    if (const auto self = spawned_rank()) {
        return run_spawned(*self, options, body);
    }
    if (const auto place = placement_from_environment()) {
        return run_launched(*place, options, body);
    }
    if (options.ranks < 1 || options.ranks > kMaxRanks) {
        throw UsageError("--ranks {} is not possible: pass a number from 1 to {}", options.ranks,
                         kMaxRanks);
    }
    const auto failures = options.mode == RankMode::kProcess
                              ? spawn_ranks(options.ranks, options.command)
                              : run_threads(options, body);
    if (!failures.empty()) {
        throw_cause(failures);
    }
    return kExitRight;
}

}  // namespace symm
