#include "symm/nccl/stats.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <string>

#include "common/sys/environment.hpp"
#include "common/sys/print.hpp"
#include "symm/nccl/nccl.hpp"

namespace symm::drop_in {
namespace {

struct Stats {
    const pid_t process = ::getpid();
    std::atomic<std::uint64_t> ours = 0;
    std::atomic<std::uint64_t> bytes = 0;
    std::mutex mutex;
    std::map<std::string, std::uint64_t> passed;
    std::map<std::string, std::uint64_t> communicators;
};

void print();

Stats& stats() {
    static Stats& kept = [&]() -> Stats& {
        auto& made = *new Stats;
        if (env::number("SYMM_NCCL_STATS") == 1) {
            std::atexit(print);
        }
        return made;
    }();
    return kept;
}

void print() {
    try {
        Stats& all = stats();
        if (all.process != ::getpid()) {  // forked: the calls are its parent's, the mutex perhaps
            return;                       // another thread's
        }
        const std::lock_guard lock(all.mutex);
        std::uint64_t passed = 0;
        for (const auto& [why, count] : all.passed) {
            passed += count;
        }
        int version = 0;
        pnccl::GetVersion(&version);
        std::string text = fmt::format(
            "symm_nccl, process {}: {} calls of {} bytes were ours, {} went to NCCL "
            "{}.{}.{}\n",
            ::getpid(), all.ours.load(), all.bytes.load(), passed, version / 10000,
            version % 10000 / 100, version % 100);
        for (const auto& [why, count] : all.passed) {
            text += fmt::format("  {:6} to NCCL: {}\n", count, why);
        }
        for (const auto& [what, count] : all.communicators) {
            text += fmt::format("  {:6} {}\n", count, what);
        }
        write_text(STDERR_FILENO, text);
    } catch (const std::exception&) {  // at the exit nothing else can be done
    }
}

}  // namespace

void count_ours(std::size_t bytes) {
    stats().ours.fetch_add(1, std::memory_order_relaxed);
    stats().bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void count_passed(const char* why) {
    const std::lock_guard lock(stats().mutex);
    ++stats().passed[why];
}

void note_communicator(int ranks, std::string_view why_passed) {
    const std::lock_guard lock(stats().mutex);
    ++stats().communicators[why_passed.empty()
                                ? fmt::format("communicators of {} ranks are ours", ranks)
                                : fmt::format("communicators of {} ranks are NCCL's: {}", ranks,
                                              why_passed)];
}

}  // namespace symm::drop_in
