#include "labs/06_allreduce/drop_in/group.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "common/sys/log.hpp"

namespace symm::drop_in {
namespace {

struct EntryWork {
    std::shared_ptr<Entry> entry;
    Work work;
};

struct Group {
    int depth = 0;
    std::vector<EntryWork> works;
};

thread_local Group group;

/// Works with the same one stay in order. Those without calls are on their own.
using Lane = std::pair<const void*, int>;
Lane lane_of(const EntryWork& one) {
    return one.work.calls.empty() ? Lane(one.entry.get(), -1)
                                  : Lane(one.work.calls.front().stream, one.entry->device());
}

Result run_all(const std::vector<EntryWork>& works, Result nccls) {
    std::atomic<Result> failure = kSuccess;
    const auto run = [&](const EntryWork& one, bool in_a_thread) {
        try {
            if (const Result result = one.entry->run(one.work, nccls); result != kSuccess) {
                failure = result;
            }
            if (in_a_thread) {
                one.entry->finish_thread(one.work);
            }
        } catch (const std::exception& error) {  // perhaps in a thread
            log::write(log::Level::kError, error.what());
            failure = kInternalError;
        }
    };
    if (works.size() > 1 && std::any_of(works.begin(), works.end(), [](const EntryWork& one) {
            return one.entry->may_wait(one.work);
        })) {
        std::map<Lane, std::vector<const EntryWork*>> lanes;
        for (const EntryWork& one : works) {
            lanes[lane_of(one)].push_back(&one);
            one.entry->finish_thread(one.work);
        }
        std::vector<std::jthread> threads;
        for (const auto& [key, lane] : lanes) {
            threads.emplace_back([&run, &lane = lane] {
                for (const EntryWork* one : lane) {
                    run(*one, true);
                }
            });
        }
    } else {
        for (const EntryWork& one : works) {
            run(one, false);
        }
    }
    return failure;
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

Result end_group(Result nccls) {
    if (group.depth == 0 || --group.depth > 0) {
        return nccls;
    }
    if (nccls != kSuccess && nccls != kInProgress) {
        group = {};
        return nccls;
    }
    const Result ours = run_all(std::exchange(group, {}).works, nccls);
    return ours != kSuccess ? ours : nccls;
}

}  // namespace symm::drop_in
