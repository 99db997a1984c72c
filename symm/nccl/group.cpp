#include "symm/nccl/group.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "symm/nccl/last_error.hpp"

namespace symm::drop_in {
namespace {

struct EntryWork {
    std::shared_ptr<Entry> entry;
    Work work;
};

struct Group {
    int depth = 0;
    Result refused = kSuccess;
    std::vector<EntryWork> works;
};

thread_local Group group;

/// Calls that stay in the program's order, by their places in the group.
using Lane = std::vector<const EntryWork*>;

bool share_a_stream(const EntryWork& one, const EntryWork& other) {
    return one.entry->device() == other.entry->device() &&
           std::any_of(one.work.calls.begin(), one.work.calls.end(), [&](const auto& call) {
               return std::any_of(other.work.calls.begin(), other.work.calls.end(),
                                  [&](const auto& others) { return others.stream == call.stream; });
           });
}

std::vector<Lane> lanes_of(const std::vector<EntryWork>& works) {
    std::vector<Lane> lanes;
    for (const EntryWork& one : works) {
        Lane joined;
        std::erase_if(lanes, [&](const Lane& lane) {
            const bool shares = std::any_of(lane.begin(), lane.end(), [&](const EntryWork* other) {
                return share_a_stream(one, *other);
            });
            if (shares) {
                joined.insert(joined.end(), lane.begin(), lane.end());
            }
            return shares;
        });
        std::sort(joined.begin(), joined.end());  // by place
        joined.push_back(&one);
        lanes.push_back(std::move(joined));
    }
    return lanes;
}

/// The first failure of a group, from any of its threads.
class FirstFailure {
public:
    /// Runs a step. No exception passes.
    void run(const std::function<Result()>& step) noexcept {
        try {
            keep(step());
        } catch (const std::exception& error) {
            keep(failed(kInternalError, error.what()));
        }
    }
    void keep(Result result) {
        Result none = kSuccess;
        result_.compare_exchange_strong(none, result);
    }
    Result get() const { return result_; }

private:
    std::atomic<Result> result_ = kSuccess;
};

void make_calls(const std::vector<EntryWork>& works, FirstFailure& failure) {
    if (works.size() < 2 || std::none_of(works.begin(), works.end(), [](const EntryWork& one) {
            return one.entry->may_wait(one.work);
        })) {
        for (const EntryWork& one : works) {
            failure.run([&] { return one.entry->call(one.work); });
        }
        return;
    }
    for (const EntryWork& one : works) {
        failure.run([&] { return one.entry->finish_thread(one.work), kSuccess; });
    }
    std::vector<std::jthread> threads;
    for (const Lane& lane : lanes_of(works)) {
        threads.emplace_back([&failure, lane] {
            for (const EntryWork* one : lane) {
                failure.run([&] { return one->entry->call(one->work); });
                failure.run([&] { return one->entry->finish_thread(one->work), kSuccess; });
            }
        });
    }
}

/// Registering and attaching, in which ranks wait for each other. A thread costs 30 us and more, so
/// there is none for a communicator that only makes calls.
void finish(const std::vector<EntryWork>& works, Result nccls, FirstFailure& failure) {
    std::vector<std::jthread> threads;
    for (const EntryWork& one : works) {
        if (Entry::must_finish(one.work)) {
            const auto step = [&failure, &one, nccls] {
                failure.run([&] { return one.entry->finish(one.work, nccls); });
            };
            works.size() == 1 ? step() : static_cast<void>(threads.emplace_back(step));
        }
    }
}

/// A communicator's streams wait for each other.
void join_streams(const std::vector<EntryWork>& works, FirstFailure& failure) {
    for (const EntryWork& one : works) {
        if (!one.work.calls.empty()) {  // else NCCL does it
            failure.run([&] { return one.entry->join(one.work.streams), kSuccess; });
        }
    }
}

}  // namespace

bool in_group() {
    return group.depth > 0;
}

void begin_group() {
    ++group.depth;
}

void drop_group() {
    if (group.depth > 0 && --group.depth == 0) {
        group = {};
    }
}

Work& work_in_group(const std::shared_ptr<Entry>& entry) {
    const auto found = std::find_if(group.works.begin(), group.works.end(),
                                    [&](const EntryWork& one) { return one.entry == entry; });
    return found != group.works.end() ? found->work
                                      : group.works.emplace_back(EntryWork{entry, {}}).work;
}

Result use_in_group(const std::shared_ptr<Entry>& entry, CUstream stream) {
    std::vector<CUstream>& streams = work_in_group(entry).streams;
    if (std::find(streams.begin(), streams.end(), stream) != streams.end()) {
        return kSuccess;
    }
    if (!streams.empty() && entry->capture_of(streams.front()) != entry->capture_of(stream)) {
        return note_in_group(
            failed(kInvalidUsage,
                   "a communicator's streams in a group must all be captured by the "
                   "same graph, or none of them"));
    }
    streams.push_back(stream);
    return kSuccess;
}

Result note_in_group(Result result) {
    if (in_group() && group.refused == kSuccess && result != kInProgress) {
        group.refused = result;
    }
    return result;
}

Result end_group() {
    if (group.depth == 0 || --group.depth > 0) {
        return nccl::GroupEnd();
    }
    const Group ended = std::exchange(group, {});
    FirstFailure failure;
    failure.keep(ended.refused);
    if (ended.refused == kSuccess) {
        join_streams(ended.works, failure);  // as in NCCL, a group waits for all its streams
        // Before NCCL's calls: a send may wait for the peer's next group, so NCCL, too, makes
        // collective calls before sends.
        make_calls(ended.works, failure);
    }
    const Result nccls = nccl::GroupEnd();
    if (ended.refused == kSuccess && (nccls == kSuccess || nccls == kInProgress)) {
        finish(ended.works, nccls, failure);  // which needs what NCCL has registered
        join_streams(ended.works, failure);   // all streams wait for the group
    }
    return failure.get() != kSuccess ? failure.get() : nccls;
}

}  // namespace symm::drop_in
