#include "common/sys/closed_on_fork.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <vector>

namespace symm {
namespace {

struct Registered {
    std::mutex mutex;  // held while a thread forks, so that the child's list is whole
    std::vector<std::span<const UniqueFd>> all;
};

Registered& registered();

// In the child, which may call only what a signal handler may. Its owners still close the numbers,
// so these stay in use.
void close_in_child() {
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const std::span<const UniqueFd> descriptors : registered().all) {
        for (const UniqueFd& one : descriptors) {
            if (one) {
                nothing >= 0 ? ::dup3(nothing, one.get(), O_CLOEXEC) : ::close(one.get());
            }
        }
    }
    ::close(nothing);
    registered().mutex.unlock();
}

Registered& registered() {
    static Registered& kept = *[] {
        ::pthread_atfork([] { registered().mutex.lock(); }, [] { registered().mutex.unlock(); },
                         close_in_child);
        return new Registered;  // outlives every owner with static storage
    }();
    return kept;
}

}  // namespace

ClosedOnFork::ClosedOnFork(std::span<const UniqueFd> descriptors) : descriptors_(descriptors) {
    const std::lock_guard lock(registered().mutex);
    registered().all.push_back(descriptors);
}

ClosedOnFork::~ClosedOnFork() {
    const std::lock_guard lock(registered().mutex);
    std::erase_if(registered().all,
                  [&](std::span<const UniqueFd> one) { return one.data() == descriptors_.data(); });
}

}  // namespace symm
