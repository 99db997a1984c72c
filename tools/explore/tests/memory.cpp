// Accesses that the explorer cannot follow: ones that it does not see, outside of the scene's
// memory, of what nothing has written, of memory that is not the scene's. Each must be refused by
// name, and the right ones beside them not. Exit status 0 if all are.

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/simt/atomic.hpp"
#include "tools/explore/explore.hpp"
#include "tools/explore/tests/is_as_expected.hpp"

namespace symm::explore {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto release = std::memory_order_release;
constexpr auto acquire = std::memory_order_acquire;

using Word = std::atomic<std::uint32_t>;
using Body = std::function<void()>;

Word* flag;                   // zeroed
std::uint32_t* numbers;       // eight that nothing has written
std::uint32_t* behind;        // zeroed: allocated after them
std::uint64_t* wide;          // two, zeroed
std::uint32_t* of_a_heap;     // one, of neither
std::uint32_t* of_the_setup;  // a local variable
thread_local std::uint32_t of_a_thread;

void wait(std::uint32_t value) {
    await([=] { return flag->load(acquire) == value; }, nullptr);
}
[[gnu::noinline, clang::no_sanitize("thread")]] void store_unseen(std::uint32_t* to) {
    *static_cast<volatile std::uint32_t*>(to) = 7;
}

struct Case {
    std::string name;
    std::string report;  ///< A regular expression, of its counterexample or its executions.
    std::vector<Body> ranks;
};

#ifdef __x86_64__
#define STORE "movl %1, (%0)"
#define LOAD "movl (%1), %0"
#else
#define STORE "str %w1, [%0]"
#define LOAD "ldr %w0, [%1]"
#endif

const Case kCases[] = {
    {"a store that is not instrumented",
     "=> numbers.3. has changed by an access that the explorer does not see$",
     {[] { store_unseen(numbers + 3); }}},
    {"a store by inline assembly",
     "behind has changed by an access .* not see: found by a plain load by r0.b0.t0",
     {[] {
         asm volatile(STORE : : "r"(behind), "r"(7) : "memory");
         *numbers = *behind;
     }}},
    {"a load by inline assembly",
     "=> r0.b0.t0 has loaded by an access that the explorer does not see: with other bytes there, "
     "plain store by r0.b0.t0 .step 1. has another value",
     {[] {
         *numbers = 1;
         std::uint32_t value = 0;
         asm volatile(LOAD : "=r"(value) : "r"(behind) : "memory");
         *wide = value;
         *numbers = 2;
     }}},
    {"an operation that clang does not instrument",
     "=> behind has changed by an access that the explorer does not see$",
     {[] { __atomic_fetch_max(behind, 7, __ATOMIC_RELAXED); }}},
    {"memcmp() is a load",
     "data race on numbers",
     {[] { numbers[0] = 5, flag->store(1, relaxed); },
      [] {
          wait(1);
          std::uint32_t other[2] = {};
          *behind = static_cast<std::uint32_t>(std::memcmp(numbers, other, sizeof *numbers));
      }}},
    {"a load of what nothing has written",
     "r0.b0.t0 loads numbers.2., which nothing has written",
     {[] { *behind = numbers[2]; }}},
    {"a copy of what was written in part", "loads numbers.*, which nothing has written", {[] {
         numbers[0] = 1;
         std::memcpy(wide, numbers, 2 * sizeof *numbers);
     }}},
    {"an atomic load of what nothing has written",
     "loads numbers.1., which nothing has written",
     {[] { *behind = simt::load(numbers + 1, simt::Order::kRelaxed); }}},
    {"an addition to what nothing has written", "loads numbers.1., which nothing has written", {[] {
         simt::fetch_add(numbers + 1, 1U, simt::Order::kRelaxed);
     }}},
    {"a check of what nothing has written", "1 executions", {[] {
         if (result(numbers) == 0) {
             fail("it is no zero");
         }
     }}},
    {"what a thread has written",
     "1 executions",
     {[] { numbers[2] = 5, flag->store(1, release); }, [] { wait(1), *behind = numbers[2]; }}},
    {"behind the end, where the next allocation could be",
     "r0.b0.t0 stores 4 bytes at an address where .*: 128 bytes after the begin of numbers.0., of "
     "32",
     {[] { numbers[32] = 5; }}},
    {"an access across the end",
     "r0.b0.t0 stores 8 bytes at an address where .*: 28 bytes after",
     {[] { std::memset(numbers + 7, 0, 8); }}},
    {"before the begin", "loads 4 bytes at an address where the scene has no memory", {[] {
         *behind = numbers[-1];
     }}},
    {"a word across two", "an atomic access of 8 bytes at wide.0..4 is not aligned", {[] {
         auto* const across = reinterpret_cast<char*>(wide) + 4;
         simt::store(reinterpret_cast<std::uint64_t*>(across), std::uint64_t{5},
                     simt::Order::kRelaxed);
     }}},
    {"a race in a poll with which no wait ends",
     "data race on behind",
     {[] { *behind = 5, flag->store(1, relaxed), flag->store(2, release); },
      [] {
          await([] { return flag->load(relaxed) == 1 ? *behind == 7 : flag->load(acquire) == 2; },
                nullptr);
      }}},
    {"a variable on another thread's stack",
     "r1.b0.t0 loads a variable of r0.b0.t0, on its stack",
     {[] {
          std::uint32_t own = 5;
          of_a_heap = &own;
          flag->store(1, release);
          wait(2);
      },
      [] {
          wait(1);
          std::uint32_t* address = nullptr;
          unseen([&] { address = of_a_heap; });
          *behind = *address;
          flag->store(2, release);
      }}},
    {"memory of the heap",
     "threads share memory of the heap, which is no memory of the scene: r0.b0.t0 has stored "
     "there, plain load by r1.b0.t0",
     {[] { *of_a_heap = 5, flag->store(1, release); }, [] { wait(1), *behind = *of_a_heap; }}},
    {"memory of the heap, loaded first",
     "threads share memory of the heap, which is no memory of the scene: r0.b0.t0 has loaded "
     "there, plain store by r1.b0.t0",
     {[] { *behind = *of_a_heap, flag->store(1, release); }, [] { wait(1), *of_a_heap = 5; }}},
    {"an update of what nothing has written",
     "=> r0.b0.t0 loads numbers.0., which nothing has written",
     {[] { *numbers += 1; }}},
    {"memory of the heap that was freed",
     "r1.b0.t0 loads memory of the heap that r0.b0.t0 has freed",
     {[] {
          auto own = std::make_unique<std::uint32_t>(5);
          unseen([&] { of_a_heap = own.get(); });
          own.reset();
          flag->store(1, release);
      },
      [] {
          wait(1);
          std::uint32_t* address = nullptr;
          unseen([&] { address = of_a_heap; });
          *behind = *address;
      }}},
    {"searches that end early", "1 executions", {[] {
         std::memset(numbers, 1, 8);
         const auto one = static_cast<int>(1 + *behind);
         const auto* const text = reinterpret_cast<const char*>(numbers);
         const bool found = std::memchr(text, one, 8) == text && std::strchr(text, one) == text;
         *behind = found ? 1 : 2;
     }}},
    {"an index outside of a local array",
     "=> r0.b0.t0: index 4 is out of bounds for .*4.* .memory.cpp:",
     {[] {
         std::uint32_t own[4] = {};
         own[4 + *behind] = 1;
         *numbers = own[1];
     }}},
    {"a local variable that nothing has written: each byte is 0xaa, not what happens to be there",
     "=> other than 5: 2863311530",
     {[] {
         std::uint32_t own[2];
         own[*behind] = 5;
         *numbers = own[1 - *behind];
         if (*numbers != 5) {
             fail(fmt::format("other than 5: {}", *numbers));
         }
     }}},
    {"a copy between bytes that overlap", "=> memcpy.. between bytes that overlap", {[] {
         std::memcpy(numbers + 1, numbers, 16 + *behind);
     }}},
    {"a local variable of the setup",
     "=> r0.b0.t0 loads a local variable of the setup, which has returned",
     {[] { *behind = *of_the_setup; }}},
    {"a thread_local variable", "r0.b0.t0 loads a thread_local variable: kernels have none", {[] {
         ++of_a_thread;
     }}},
    {"memory of the heap that one gives back, and another gets",
     "1 executions",
     {[] {
          { const auto own = std::make_unique<std::vector<std::uint32_t>>(100, 5U); }
          flag->store(1, release);
      },
      [] {
          wait(1);
          const auto own = std::make_unique<std::vector<std::uint32_t>>(100, 7U);
          *behind = own->back();
      }}},
};

constexpr std::pair<int, unsigned> kChances[] = {{2, 3}, {1, 4}};
/// In each `n`th execution a thread makes a step more than when its next choice was first made.
/// `ranks` of them: one has only one execution.
bool chance_is_refused(int ranks, unsigned n) {
    unsigned executions = 0;
    try {
        explore({}, [&](Scene& scene) {
            flag = scene.zeroed<Word>(2, "flag");
            behind = scene.zeroed<std::uint32_t>(1, "behind");
            const bool counts = ++executions % n == 0;
            for (int rank = 0; rank < ranks; ++rank) {
                scene.launch(rank, {}, [=](const auto&) {
                    if (counts && rank == 0) {
                        ++*behind;
                    }
                    flag[rank].store(1, relaxed);
                    flag[1 - rank].load(relaxed);
                    flag[rank].store(2, relaxed);
                    flag[1 - rank].load(relaxed);
                });
            }
        });
    } catch (const std::runtime_error& error) {
        return std::string_view(error.what()).starts_with("the scene is not deterministic");
    }
    return false;
}

}  // namespace
}  // namespace symm::explore

int main() {
    using namespace symm::explore;
    int wrong = 0;
    for (const auto& [ranks, n] : kChances) {
        if (!chance_is_refused(ranks, n)) {
            fmt::print("chance with {} ranks, each {}th time, is not refused\n", ranks, n);
            ++wrong;
        }
    }
    for (const Case& one : kCases) {
        const auto heap = std::make_unique<std::uint32_t>(0);
        const Report report = explore({}, [&](Scene& scene) {
            std::uint32_t local = 5;
            of_a_heap = heap.get();
            of_the_setup = &local;
            flag = scene.zeroed<Word>(1, "flag");
            numbers = scene.allocate<std::uint32_t>(8, "numbers");
            behind = scene.zeroed<std::uint32_t>(1, "behind");
            wide = scene.zeroed<std::uint64_t>(2, "wide");
            for (std::size_t rank = 0; rank < one.ranks.size(); ++rank) {
                scene.launch(static_cast<int>(rank), {},
                             [&, rank](const auto&) { one.ranks[rank](); });
            }
        });
        wrong += is_as_expected(one.name, one.report, report) ? 0 : 1;
    }
    fmt::print("{} of {} cases are wrong\n", wrong, std::size(kCases) + std::size(kChances));
    return wrong == 0 ? 0 : 1;
}
