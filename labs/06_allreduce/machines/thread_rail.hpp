#pragma once
/// \file
/// Machines that are groups of threads of one process: to learn and to test without a cluster.
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

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/ranks/ranks.hpp"
#include "labs/06_allreduce/machines/exchange.hpp"
#include "labs/06_allreduce/machines/rail.hpp"

namespace symm {

/// Where the threads of one rail meet.
class ThreadMeeting {
public:
    explicit ThreadMeeting(int machines) : data_(static_cast<std::size_t>(machines)) {}

    int machines() const { return static_cast<int>(data_.size()); }
    /// Runs `copy(data of machine m)` for all m, once all have called with their data.
    void exchange(int machine, const std::byte* data, Deadline deadline,
                  const std::function<void(std::size_t m, const std::byte* data)>& copy);
    void fail(std::string_view text);

private:
    void meet(std::unique_lock<std::mutex>& lock, int machine, Deadline deadline);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<const std::byte*> data_;
    std::vector<bool> here_ = std::vector<bool>(data_.size());
    std::size_t meetings_ = 0;
    std::string failure_;
};

class ThreadRail final : public Rail {
public:
    ThreadRail(std::shared_ptr<ThreadMeeting> meeting, int machine)
        : meeting_(std::move(meeting)), machine_(machine) {}

    int machine() const override { return machine_; }
    int machines() const override { return meeting_->machines(); }
    void all_to_all(const std::byte* from, std::byte* to, std::size_t bytes,
                    Deadline deadline) override;
    void all_gather(const std::byte* from, std::byte* to, std::size_t bytes,
                    Deadline deadline) override;
    void fail(std::string_view text) noexcept override;

private:
    std::shared_ptr<ThreadMeeting> meeting_;
    int machine_;
};

/// The work of each rank of each machine: given its rank inside the machine, and its rail.
using OnMachine = std::function<void(Rank& inside, std::unique_ptr<Rail> rail)>;

/// Runs `body` on `ranks[m]` ranks of each machine m, all of them threads of this process. Passes
/// on exceptions, and throws UsageError if the machines have different numbers of ranks, or if a
/// launcher started this process as a rank. `device` as in RankOptions, by the number of the rank
/// among all.
int run_on_machines(const std::vector<int>& ranks, const OnMachine& body,
                    const std::function<int(int rank)>& device = {});

}  // namespace symm
