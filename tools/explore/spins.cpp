// Loops that poll without a Waiter: how they are recognized.

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

#include "tools/explore/waits.hpp"

namespace symm::explore {
namespace {

/// A loop with more loads than this is not recognized.
constexpr std::size_t kMostIdleLoads = 256;
/// With so many earlier loads of the same word a load is compared.
constexpr int kMostCompared = 4;

/// Bytes below a frame address where a function has saved registers of its caller.
#ifdef __x86_64__
constexpr std::ptrdiff_t kSavedRegisters = 5 * 8;
#else
constexpr std::ptrdiff_t kSavedRegisters = 8 * 8;  // d8 to d15; x19 to x28 are above
#endif

/// A hash of all that the thread has read up to now, and of where this load was in that.
std::size_t history_since(const Thread& thread, const IdleLoad& load) {
    auto reads = thread.reads;
    reads.push_back(load.earlier);
    reads.push_back(static_cast<std::uint64_t>(thread.index));
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(reads.data()), reads.size() * sizeof(reads[0])});
}

}  // namespace

std::vector<std::uint64_t> Waits::state_of(const Thread& thread, const void* frame) {
    const char* const begin = static_cast<const char*>(frame) - kSavedRegisters;
    std::vector<std::uint64_t> state(
        static_cast<std::size_t>(static_cast<const char*>(thread.stack_base) - begin) / 8);
    std::memcpy(state.data(), begin, state.size() * 8);
    return state;
}

void Waits::add_idle_load(Thread& thread, std::vector<std::uint64_t> state, std::size_t location,
                          std::uint64_t value) {
    auto& idle = thread.idle.loads;
    if (idle.size() == kMostIdleLoads) {
        idle.erase(idle.begin());
    }
    const std::size_t earlier = thread.reads.size() - 1;
    idle.push_back({std::move(state), location, earlier, thread.reads.back(), value});
}

// A thread that comes back to a state, without an effect in between, polls. If it can never read
// anything else, it waits for ever. As soon as it can, this execution is left out: the one in which
// it waited for that is another one.
//
// The first round of a loop begins in another state than later ones where a register or a variable
// keeps what was read, though the next round does not use it. So a thread is seen to poll after its
// third round. The search then begins again, and knows it after the first one.
void Waits::spin_if_known(Thread& thread, const std::vector<std::uint64_t>& state,
                          std::size_t location) {
    const auto& idle = thread.idle.loads;
    auto& perhaps = thread.idle.perhaps_spins;
    int compared = 0;
    for (std::size_t first = idle.size(); first-- > 0 && compared < kMostCompared;) {
        const IdleLoad& earlier = idle[first];
        if (earlier.location != location) {
            continue;
        }
        ++compared;
        const auto is_alike = [&](std::uint64_t word, std::uint64_t before) {
            return word == before || std::find_if(idle.begin() + static_cast<long>(first),
                                                  idle.end(), [&](const IdleLoad& load) {
                                                      return load.value == word;
                                                  }) != idle.end();
        };
        if (!std::ranges::equal(state, earlier.state, is_alike)) {
            continue;
        }
        if (state != earlier.state) {
            const std::size_t history = history_since(thread, earlier);
            if (!spins_.contains(history)) {
                perhaps[thread.reads.size()].push_back(history);
                continue;
            }
        }
        for (const std::size_t history : perhaps[earlier.earlier]) {
            if (spins_.insert(history).second) {
                search_.learn();
            }
        }
        thread.wait = {};
        for (std::size_t i = first; i < idle.size(); ++i) {
            thread.wait.polled.push_back({idle[i].location, 0, idle[i].read});
        }
        any_spins_ = true;
        thread.suspend(ThreadState::kSpins);
    }
}

bool Waits::is_redundant(std::span<const Thread> threads) {
    return any_spins_ && std::ranges::any_of(threads, [&](const Thread& thread) {
               return thread.state == ThreadState::kSpins &&
                      std::ranges::any_of(thread.wait.polled, [&](const auto& polled) {
                          const auto& stores = memory_[polled.location].stores;
                          return stores.empty() || stores.back()->id != polled.read;
                      });
           });
}

}  // namespace symm::explore
