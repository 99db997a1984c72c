#include "labs/06_allreduce/drop_in/group.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace symm::drop_in {
namespace {

struct EntryWork {
    std::shared_ptr<Entry> entry;
    Work work;
};

struct Registration {
    std::shared_ptr<Entry> entry;
    ncclWindow_vidmem** handle;
    void* memory;
    std::size_t bytes;
};

struct Group {
    int depth = 0;
    std::vector<EntryWork> works;
    std::vector<Registration> registrations;
};

thread_local Group group;

Result run_all(const std::vector<EntryWork>& works) {
    std::vector<Result> results(works.size(), kSuccess);
    const auto run = [&](std::size_t i) { results[i] = works[i].entry->run(works[i].work); };
    if (works.size() > 1 && std::any_of(works.begin(), works.end(), [](const EntryWork& one) {
            return one.entry->may_wait(one.work);
        })) {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < works.size(); ++i) {
            threads.emplace_back(run, i);
        }
    } else {
        for (std::size_t i = 0; i < works.size(); ++i) {
            run(i);
        }
    }
    const auto failed =
        std::find_if(results.begin(), results.end(), [](Result one) { return one != kSuccess; });
    return failed == results.end() ? kSuccess : *failed;
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

void register_in_group(const std::shared_ptr<Entry>& entry, ncclWindow_vidmem** handle,
                       void* memory, std::size_t bytes) {
    group.registrations.push_back({entry, handle, memory, bytes});
}

Result end_group(Result nccls) {
    if (group.depth == 0 || --group.depth > 0) {
        return nccls;
    }
    if (nccls != kSuccess && nccls != kInProgress) {
        group = {};
        return nccls;
    }
    for (const EntryWork& one : group.works) {
        if (const Result result = settle(one.entry->comm(), nccls); result != kSuccess) {
            group = {};
            return result;
        }
    }
    for (const Registration& one : group.registrations) {
        settle(one.entry->comm(), nccls);
        if (*one.handle != nullptr) {  // null: NCCL cannot use the memory as a window
            work_in_group(one.entry).windows.push_back({*one.handle, one.memory, one.bytes});
        }
    }
    const Result ours = run_all(std::exchange(group, {}).works);
    return ours != kSuccess ? ours : nccls;
}

Result settle(ncclComm* comm, Result result) {
    while (result == kInProgress) {
        std::this_thread::sleep_for(std::chrono::microseconds{50});
        int error = kSuccess;
        const Result asked = nccl::CommGetAsyncError(comm, &error);
        result = asked != kSuccess ? asked : static_cast<Result>(error);
    }
    return result;
}

}  // namespace symm::drop_in
