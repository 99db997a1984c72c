// Loops that poll without a Waiter: how they are recognized.

#include <algorithm>
#include <cstring>
#include <utility>

#include "tools/explore/exploration.hpp"

namespace symm::explore {
namespace {

/// A loop with more loads than this is not recognized.
constexpr std::size_t kMostIdleLoads = 256;
/// With so many earlier loads of the same word a load is compared.
constexpr int kMostCompared = 4;

/// Bytes below a frame address where a function has saved the registers of its caller (x86-64).
constexpr std::ptrdiff_t kSavedRegisters = 5 * 8;

}  // namespace

void Exploration::had_effect() {
    current_->idle_loads = 0;
    if (!current_->idle.empty()) {
        current_->idle.clear();
        current_->perhaps_spins.clear();
    }
}

// What a thread does next depends on this alone, if the memory that it reads stays the same.
std::vector<std::uint64_t> Exploration::state_of_thread(const AtomicAccess& access) const {
    const char* const begin = static_cast<const char*>(access.frame) - kSavedRegisters;
    std::vector<std::uint64_t> state(
        static_cast<std::size_t>(static_cast<const char*>(current_->stack_base) - begin) / 8);
    std::memcpy(state.data(), begin, state.size() * 8);
    return state;
}

// Called after it.
void Exploration::add_idle_load(std::vector<std::uint64_t> state, std::size_t location,
                                std::uint64_t value) {
    auto& idle = current_->idle;
    if (idle.size() == kMostIdleLoads) {
        idle.erase(idle.begin());
    }
    const std::size_t earlier = current_->reads.size() - 1;
    idle.push_back({std::move(state), location, earlier, current_->reads.back(), value});
}

/// A hash of all that the calling thread has read up to now, and of where this load was in that.
std::size_t Exploration::history_since(const IdleLoad& load) const {
    auto reads = current_->reads;
    reads.push_back(load.earlier);
    reads.push_back(static_cast<std::uint64_t>(number_of(*current_)));
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(reads.data()), reads.size() * sizeof(reads[0])});
}

// A thread that comes back to a state, without an effect in between, polls. If it can never read
// anything else, it waits for ever. As soon as it can, this execution is left out: the one in which
// it waited for that is another one.
//
// The first round of a loop begins in another state than later ones where a register or a variable
// keeps what was read, though the next round does not use it. So a thread is seen to poll after its
// third round. The search then begins again, and knows it after the first one.
void Exploration::spin_if_known(const std::vector<std::uint64_t>& state, std::size_t location) {
    const auto& idle = current_->idle;
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
            const std::size_t history = history_since(earlier);
            if (!spins_.contains(history)) {
                current_->perhaps_spins[current_->reads.size()].push_back(history);
                continue;
            }
        }
        for (const std::size_t history : current_->perhaps_spins[earlier.earlier]) {
            begin_again_ = spins_.insert(history).second || begin_again_;
        }
        current_->wait = {};
        for (std::size_t i = first; i < idle.size(); ++i) {
            current_->wait.polled.push_back({idle[i].location, 0, idle[i].read});
        }
        current_->state = ThreadState::kSpins;
        any_spins_ = true;
        current_->fiber->suspend();
    }
}

// Whether a thread that spins could read something newer.
bool Exploration::is_redundant() {
    return any_spins_ &&
           std::any_of(threads_.begin(), threads_.begin() + static_cast<long>(thread_count_),
                       [&](const Thread& thread) {
                           return thread.state == ThreadState::kSpins &&
                                  std::ranges::any_of(thread.wait.polled, [&](const auto& polled) {
                                      const auto& stores = memory_[polled.location].stores;
                                      return stores.empty() || stores.back()->id != polled.read;
                                  });
                       });
}

}  // namespace symm::explore
