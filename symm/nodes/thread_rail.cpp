#include "symm/nodes/thread_rail.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/ranks/launcher_environment.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

/// Where the threads of one rail meet.
///
/// | step    | a machine's thread                       | order              |
/// |---------|------------------------------------------|--------------------|
/// | arrive  | leaves the address of its data           | under the mutex    |
/// | meet    | waits until all machines have arrived    | condition variable |
/// | copy    | copies its part of the data of each      | under the mutex    |
/// | meet    | waits until all have copied              | condition variable |
///
/// After the second meeting each thread may use its data again, and arrive for the next call. A
/// thread that gives up leaves with the mutex too, so no other one is copying its data, or will.
class Meeting {
public:
    explicit Meeting(int machines) : data_(static_cast<std::size_t>(machines)) {}

    int machines() const { return static_cast<int>(data_.size()); }

    /// Runs `copy(m, data of machine m)` for all m, once all have called with their data.
    template <class Copy>
    void exchange(int machine, const std::byte* data, Deadline deadline, const Copy& copy) {
        std::unique_lock lock(mutex_);
        data_[static_cast<std::size_t>(machine)] = data;
        meet(lock, machine, deadline);
        throw_if_failed();  // since then a machine has left
        for (std::size_t m = 0; m < data_.size(); ++m) {
            copy(m, data_[m]);
        }
        meet(lock, machine, deadline);
    }

    void fail(std::string_view text) {
        const std::lock_guard lock(mutex_);
        if (failure_.empty()) {
            failure_ = text;
        }
        changed_.notify_all();
    }

private:
    void meet(std::unique_lock<std::mutex>& lock, int machine, Deadline deadline) {
        throw_if_failed();  // a machine that has left does not keep its data
        const std::size_t meeting = meetings_;
        here_[static_cast<std::size_t>(machine)] = true;
        if (std::ranges::find(here_, false) == here_.end()) {
            here_.assign(here_.size(), false);
            ++meetings_;
            changed_.notify_all();
        }
        const bool in_time = changed_.wait_until(
            lock, deadline.end(), [&] { return meetings_ != meeting || !failure_.empty(); });
        if (meetings_ != meeting) {
            return;
        }
        if (!in_time) {
            const auto missing = std::ranges::find(here_, false) - here_.begin();
            failure_ = fmt::format("machine {} did not arrive within {:.3g} s", missing,
                                   deadline.seconds());
            changed_.notify_all();
        }
        throw_if_failed();
    }

    void throw_if_failed() const {
        if (!failure_.empty()) {
            throw std::runtime_error(failure_);
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<const std::byte*> data_;
    std::vector<bool> here_ = std::vector<bool>(data_.size());
    std::size_t meetings_ = 0;
    std::string failure_;
};

class ThreadRail final : public Rail {
public:
    ThreadRail(Meeting& meeting, int machine) : meeting_(meeting), machine_(machine) {}

    int machine() const override { return machine_; }
    int machines() const override { return meeting_.machines(); }
    void all_to_all(const std::byte* from, std::byte* to, std::size_t bytes,
                    Deadline deadline) override {
        const std::size_t own = static_cast<std::size_t>(machine_) * bytes;
        meeting_.exchange(machine_, from, deadline, [&](std::size_t m, const std::byte* data) {
            std::memcpy(to + m * bytes, data + own, bytes);
        });
    }
    void all_gather(const std::byte* from, std::byte* to, std::size_t bytes,
                    Deadline deadline) override {
        meeting_.exchange(machine_, from, deadline, [&](std::size_t m, const std::byte* data) {
            if (data != to + m * bytes) {  // else it is in place, and other machines read it
                std::memcpy(to + m * bytes, data, bytes);
            }
        });
    }
    void fail(std::string_view text) noexcept override { meeting_.fail(text); }

private:
    Meeting& meeting_;
    int machine_;
};

}  // namespace

int run_on_nodes(int machines, int ranks, const OnNode& body) {
    if (const auto place = placement_from_environment()) {  // its ranks are processes
        throw UsageError(
            "{} started this process as rank {} of {}, but threads of one process act as machines "
            "here: use 06_allreduce_mpi, or set SYMM_LAUNCHER=none",
            place->launcher, place->rank, place->size);
    }
    std::vector<std::vector<Connections>> connections;  // by machine
    for (int m = 0; m < machines; ++m) {
        connections.push_back(connected_sockets(ranks));
    }
    std::deque<Meeting> meetings;  // by rail
    for (int r = 0; r < ranks; ++r) {
        meetings.emplace_back(machines);
    }
    return run_ranks({ranks * machines, RankMode::kThread, {}}, [&](Rank& outside) {
        const int machine = outside.rank() / ranks;
        const int number = outside.rank() % ranks;
        const auto rail = static_cast<std::size_t>(number);
        Rank rank(
            std::make_unique<SocketBootstrap>(
                number, ranks, std::move(connections[static_cast<std::size_t>(machine)][rail])),
            RankMode::kThread, outside.device());
        try {
            body(rank, std::make_unique<ThreadRail>(meetings[rail], machine));
        } catch (const std::exception& error) {
            const std::string text =
                fmt::format("rank {} of machine {} failed: {}", number, machine, error.what());
            rank.bootstrap().fail(text);
            meetings[rail].fail(text);
            throw;
        }
    });
}

}  // namespace symm
