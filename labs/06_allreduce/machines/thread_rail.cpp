#include "labs/06_allreduce/machines/thread_rail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/ranks/launcher_environment.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {

void ThreadMeeting::meet(std::unique_lock<std::mutex>& lock, int machine, Deadline deadline) {
    if (!failure_.empty()) {  // a machine that has left does not keep its data
        throw std::runtime_error(failure_);
    }
    const std::size_t meeting = meetings_;
    here_[static_cast<std::size_t>(machine)] = true;
    if (std::find(here_.begin(), here_.end(), false) == here_.end()) {
        std::fill(here_.begin(), here_.end(), false);
        ++meetings_;
        changed_.notify_all();
    }
    const bool in_time = changed_.wait_until(
        lock, deadline.end(), [&] { return meetings_ != meeting || !failure_.empty(); });
    if (meetings_ != meeting) {
        return;
    }
    if (in_time) {
        throw std::runtime_error(failure_);
    }
    const auto missing = std::find(here_.begin(), here_.end(), false) - here_.begin();
    failure_ =
        fmt::format("machine {} did not arrive within {:.3g} s", missing, deadline.seconds());
    changed_.notify_all();
    throw std::runtime_error(failure_);
}

void ThreadMeeting::exchange(
    int machine, const std::byte* data, Deadline deadline,
    const std::function<void(std::size_t m, const std::byte* data)>& copy) {
    std::unique_lock lock(mutex_);
    data_[static_cast<std::size_t>(machine)] = data;
    meet(lock, machine, deadline);
    if (!failure_.empty()) {  // since then a machine has left
        throw std::runtime_error(failure_);
    }
    for (std::size_t m = 0; m < data_.size(); ++m) {
        copy(m, data_[m]);
    }
    meet(lock, machine, deadline);
}

void ThreadMeeting::fail(std::string_view text) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) {
        failure_ = text;
    }
    changed_.notify_all();
}

void ThreadRail::all_to_all(const std::byte* from, std::byte* to, std::size_t bytes,
                            Deadline deadline) {
    const std::size_t own = static_cast<std::size_t>(machine_) * bytes;
    meeting_->exchange(machine_, from, deadline, [&](std::size_t m, const std::byte* data) {
        std::memcpy(to + m * bytes, data + own, bytes);
    });
}

void ThreadRail::all_gather(const std::byte* from, std::byte* to, std::size_t bytes,
                            Deadline deadline) {
    meeting_->exchange(machine_, from, deadline, [&](std::size_t m, const std::byte* data) {
        if (data != to + m * bytes) {  // else it is in place already, and other machines read it
            std::memcpy(to + m * bytes, data, bytes);
        }
    });
}

void ThreadRail::fail(std::string_view text) noexcept {
    meeting_->fail(text);
}

int run_on_machines(const std::vector<int>& ranks, const OnMachine& body,
                    const std::function<int(int rank)>& device) {
    for (std::size_t m = 1; m < ranks.size(); ++m) {
        if (ranks[m] != ranks[0]) {
            throw UsageError(
                fmt::format("all machines need the same number of ranks, but they "
                            "have {}",
                            fmt::join(ranks, ", ")));
        }
    }
    if (const auto place = placement_from_environment()) {  // its ranks are processes
        throw UsageError(fmt::format(
            "{} started this process as rank {} of {}, but threads of one process act as machines "
            "here: use 06_allreduce_mpi, or set SYMM_LAUNCHER=none",
            place->launcher, place->rank, place->size));
    }
    const int inside = ranks.at(0);
    std::vector<std::vector<Connections>> connections;
    for (std::size_t m = 0; m < ranks.size(); ++m) {
        connections.push_back(connected_sockets(inside));
    }
    std::vector<std::shared_ptr<ThreadMeeting>> meetings;
    for (int r = 0; r < inside; ++r) {
        meetings.push_back(std::make_shared<ThreadMeeting>(static_cast<int>(ranks.size())));
    }
    const RankOptions options{
        inside * static_cast<int>(ranks.size()), RankMode::kThread, {}, device};
    return run_ranks(options, [&](Rank& outside) {
        const int machine = outside.rank() / inside;
        const int number = outside.rank() % inside;
        auto& mine = connections[static_cast<std::size_t>(machine)];
        Rank rank(std::make_unique<SocketBootstrap>(
                      number, inside, std::move(mine[static_cast<std::size_t>(number)])),
                  RankMode::kThread, outside.device());
        const auto tell = [&](const std::string& text) {
            rank.bootstrap().fail(text);
            meetings[static_cast<std::size_t>(number)]->fail(text);
        };
        try {
            body(rank,
                 std::make_unique<ThreadRail>(meetings[static_cast<std::size_t>(number)], machine));
        } catch (const std::exception& error) {
            tell(fmt::format("rank {} of machine {} failed: {}", number, machine, error.what()));
            throw;
        }
    });
}

}  // namespace symm
