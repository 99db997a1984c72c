#include "tools/explore/log.hpp"

#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <span>
#include <string_view>

#include "tools/explore/schedule.hpp"

namespace symm::explore {
namespace {

/// More steps than any execution that ends. Nothing else ends a loop that never lets another thread
/// run.
constexpr std::size_t kMostSteps = 100'000;

/// In decimal if that is short, also of two words in one.
std::string number_text(std::uint64_t value) {
    constexpr std::uint64_t kShort = 1'000'000;
    const std::uint64_t low = value & 0xffffffff;
    return value < kShort                         ? fmt::format("{}", value)
           : low < kShort && value >> 32 < kShort ? fmt::format("{}, {}", low, value >> 32)
                                                  : fmt::format("{:#x}", value);
}

extern "C" char __data_start, _end;  // NOLINT: the linker's: all global variables lie between them

/// The program's `thread_local` variables, of this thread of the host. The first module that the
/// linker knows is the program.
std::span<const char> thread_locals() {
    std::span<const char> found;
    ::dl_iterate_phdr(
        [](dl_phdr_info* module, std::size_t, void* result) {
            for (const auto& part : std::span(module->dlpi_phdr, module->dlpi_phnum)) {
                if (part.p_type == PT_TLS && module->dlpi_tls_data != nullptr) {
                    *static_cast<std::span<const char>*>(result) = {
                        static_cast<const char*>(module->dlpi_tls_data), part.p_memsz};
                }
            }
            return 1;
        },
        &found);
    return found;
}

}  // namespace

bool is_global(std::uintptr_t address) {
    const auto* const at = reinterpret_cast<const char*>(address);
    return &__data_start <= at && at < &_end;
}

bool is_thread_local(std::uintptr_t address) {
    static const std::span<const char> kAll = thread_locals();
    return address - reinterpret_cast<std::uintptr_t>(kAll.data()) < kAll.size();
}

void Log::clear() {
    ++executions_;
    names_.clear();
    log_.clear();
    bytes_.clear();
    frames_.clear();
    constant_loads_ = 0;
    trace_ = 0;
    why_.clear();
    involved_.clear();
}

void Log::begin_steps() {
    const auto* const begin = reinterpret_cast<const char*>(memory_.origin());
    initial_.assign(begin, begin + memory_.used());
}

const NamedMemory* Log::memory_at(std::uintptr_t address) const {
    const auto named = std::find_if(names_.rbegin(), names_.rend(), [&](const NamedMemory& one) {
        return address >= one.begin && address < one.end;
    });
    return named == names_.rend() ? nullptr : &*named;
}

std::string Log::name_of(std::uintptr_t address) const {
    if (!memory_.holds(address)) {
        return is_global(address) ? "a global variable" : "memory of the heap";
    }
    const NamedMemory* const named = memory_at(address);
    if (named == nullptr) {
        return "?";
    }
    std::string text = named->name;
    std::size_t at = address - named->begin;
    if (named->element > 1 && named->end - named->begin > named->element) {
        text += fmt::format("[{}]", at / named->element);
        at %= named->element;
    }
    return at == 0 ? text : fmt::format("{}+{}", text, at);
}

std::string Log::value_of(std::uintptr_t address, const char* bytes, std::size_t size) const {
    const NamedMemory* const named = memory_at(address);
    const Shown shown = named == nullptr ? Shown::kNumber : named->shown;
    if (size > 16) {
        return fmt::format("{} bytes", size);
    }
    // Where the scene lies may differ from run to run: no half of an address is told as a number.
    const auto packet_data = [&](std::uint64_t data) {
        const std::uintptr_t begin = memory_.origin();
        for (const std::uint64_t high : {begin >> 32, (begin + kSceneBytes - 1) >> 32}) {
            if (const std::uint64_t address = high << 32 | data; memory_at(address) != nullptr) {
                return fmt::format("low half of &{}", name_of(address));
            }
            if (data == high) {
                return std::string("high half");
            }
        }
        return number_text(data);
    };
    const std::size_t part =
        std::min(size, named != nullptr && named->element == 4 ? std::size_t{4} : 8);
    std::vector<std::string> values;
    for (std::size_t at = 0; at + part <= size; at += part) {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes + at, part);
        const auto real = std::bit_cast<float>(static_cast<std::uint32_t>(value));
        if (std::all_of(bytes + at, bytes + at + part, [](char c) { return c == kUnwritten; })) {
            values.emplace_back("?");
        } else if (shown == Shown::kFloat && part == 4 && !std::isnan(real)) {
            values.push_back(fmt::format("{}", real));
        } else if (shown == Shown::kPacket && part == 8) {
            values.push_back(fmt::format("{} (flag {})", packet_data(value & 0xffffffff),
                                         number_text(value >> 32)));
        } else {
            values.push_back(memory_.holds(value) ? '&' + name_of(value) : number_text(value));
        }
    }
    return fmt::format("{}", fmt::join(values, ", "));
}

void Log::check_endless(const Thread& thread) {
    if (log_.size() + constant_loads_ >= kMostSteps) {
        const bool meets = std::ranges::any_of(log_, [&](const LoggedStep& step) {
            return step.thread == &thread && std::string_view(step.what).ends_with("sync");
        });
        fail(fmt::format("{} is in an endless loop: {} steps in one execution{}", thread.name(),
                         kMostSteps,
                         meets ? ". If it polls, with a sync or a vote in each round: such a wait "
                                 "is not recognized. Vote after the wait"
                               : ""));
    }
}

long Log::add(const Thread& thread, LoggedStep step) {
    check_endless(thread);
    keep_stored();
    refuse_unexpected();
    step.thread = &thread;
    step.frame = thread.frame;
    step.by_multicast = thread.through_multicast;
    step.bytes = bytes_.size();
    const Access& access = step.access;
    for (const std::uint64_t part :
         {static_cast<std::uint64_t>(thread.index), static_cast<std::uint64_t>(step.what[0]),
          memory_.holds(access.address) ? access.address - memory_.origin() : 0, access.size}) {
        trace_ = (trace_ ^ part) * 0x100000001b3;  // as FNV-1a
    }
    if (step.access.address != 0 && !step.access.order) {
        const char* const bytes = memory_.real_of(step.access.address);
        bytes_.insert(bytes_.end(), bytes, bytes + step.access.size);
    }
    log_.push_back(std::move(step));
    return static_cast<long>(log_.size()) - 1;
}

void Log::add_constant_load(const Thread& thread) {
    ++constant_loads_;
    check_endless(thread);
}

// The last step, if it was a plain store, has now been made: keeps what it has stored.
void Log::keep_stored() {
    if (!log_.empty() && log_.back().what == kPlainStore) {
        const LoggedStep& step = log_.back();
        std::memcpy(&bytes_[step.bytes], memory_.real_of(step.access.address), step.access.size);
    }
}

std::uint64_t Log::value_of(const LoggedStep& step) const {
    const Access& access = step.access;
    const bool is_plain = access.address != 0 && !access.order;
    const std::string_view bytes(&bytes_[step.bytes], is_plain ? access.size : 0);
    return std::hash<std::string_view>()(bytes) ^ (step.value * 0x100000001b3);
}

std::vector<std::uint64_t> Log::values() {
    keep_stored();
    std::vector<std::uint64_t> values;
    for (const LoggedStep& step : log_) {
        values.push_back(value_of(step));
    }
    return values;
}

void Log::refuse_unexpected() {
    const std::size_t last = log_.size() - 1;
    if (executions_ == expected_in_ && last < expected_.size() &&
        value_of(log_[last]) != expected_[last]) {
        fail(fmt::format("{} has loaded by an access that the explorer does not see: with other "
                         "bytes there, {} has another value",
                         log_[last].thread->name(), described(static_cast<long>(last))),
             {static_cast<long>(last)});
    }
}

void Log::acquire_halves(const Thread& thread) {
    auto step = log_.rbegin();
    for (int half = 0; half < 2; ++half) {
        step = std::find_if(step, log_.rend(), [&](const LoggedStep& one) {
            return one.thread == &thread && std::string_view(one.what) == "load";
        });
        step->access.order = std::memory_order_acquire;
        ++step;
    }
}

long Log::last_atomic(std::uintptr_t address, std::size_t size) const {
    const auto found = std::find_if(log_.rbegin(), log_.rend(), [&](const LoggedStep& step) {
        return step.access.order && step.access.address == address && step.access.size == size;
    });
    return log_.rend() - found - 1;
}

long Log::last_access(const Thread& thread, std::uintptr_t address) const {
    const auto found = std::find_if(log_.rbegin(), log_.rend(), [&](const LoggedStep& step) {
        return step.thread == &thread && step.access.address == address;
    });
    return log_.rend() - found - 1;
}

std::string Log::described(long number) const {
    const LoggedStep& one = step(number);
    return fmt::format("{} by {} (step {})", one.what, one.thread->name(), number);
}

void Log::fail(std::string why, std::vector<long> involved) {
    why_ = std::move(why);
    involved_ = std::move(involved);
    siglongjmp(failed_, 1);
}

void Log::refuse_unseen() {
    if (const std::uintptr_t changed = memory_.changed_unseen(); changed != 0) {
        fail(fmt::format("{} has changed by an access that the explorer does not see",
                         name_of(changed)));
    }
}

bool Log::is_of_another_rank(std::uintptr_t address, const Thread& thread) const {
    const NamedMemory* const memory = memory_at(address);
    return memory != nullptr && memory->rank >= 0 && memory->rank != thread.rank;
}

std::uint64_t Log::over_links() const {
    std::uint64_t accesses = 0;
    for (const LoggedStep& step : log_) {
        if (is_of_another_rank(step.access.address, *step.thread)) {
            accesses += (step.access.size + 15) / 16;  // memcpy is one step
        }
    }
    return accesses;
}

}  // namespace symm::explore
