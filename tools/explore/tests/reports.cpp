// What the explorer says of scenes that it refuses or finds wrong, and of those that a plain CUDA
// kernel has: loops that poll, volatile, threads that leave early. Exit status 0 if all reports are
// as expected.

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "common/simt/atomic.hpp"
#include "tools/explore/counterexample.hpp"
#include "tools/explore/explore.hpp"
#include "tools/explore/tests/is_as_expected.hpp"

namespace symm::explore {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto release = std::memory_order_release;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto seq_cst = std::memory_order_seq_cst;

using Word = std::atomic<std::uint32_t>;
using Body = std::function<void()>;

Word *x, *y;
std::uint32_t* data;
std::uint32_t global;

template <class T>
std::atomic<T>& as(void* word) {
    return *static_cast<std::atomic<T>*>(word);
}
std::uint32_t volatile_load(const void* p) {
    return *static_cast<const volatile std::uint32_t*>(p);
}
void volatile_store(void* p, std::uint32_t value) {
    *static_cast<volatile std::uint32_t*>(p) = value;
}
void expect(std::uint32_t seen, std::uint32_t expected) {
    if (seen != expected) {
        fail(fmt::format("reads {}", seen));
    }
}
// A loop as in a plain kernel, and a wait that the explorer knows.
void poll(const Word* word, std::uint32_t value, std::memory_order order) {
    while (word->load(order) != value) {
    }
}
void wait(const Word* word, std::uint32_t value) {
    await([=] { return word->load(acquire) == value; }, nullptr);
}
void add_under_lock() {
    std::uint32_t expected = 0;
    while (!x->compare_exchange_strong(expected, 1, acquire)) {
        expected = 0;
    }
    ++*data;
    x->store(0, release);
}

struct Case {
    const char* name;
    const char* report;  ///< A regular expression: of counterexample() or executions.
    std::vector<Body> ranks;
    Options options = {};
};

const Case kCases[] = {
    {"a word and its other half",
     R"(of two sizes: 8 bytes of word.0., store by r0.b0.t0 \(step 0\); 4 bytes of word.1., )"
     R"(access by r1.b0.t0 \(step 1\))",
     {[] { as<std::uint64_t>(x).store(1, relaxed); },
      [] { as<std::uint32_t>(x + 1).load(relaxed); }}},
    {"a word and a half of it, which a poll reads",
     "atomic accesses of two sizes: 4 bytes of word.0., in a poll; 8 bytes of word.0., access by "
     "r1.b0.t0",
     {[] { await([] { return x->load(relaxed) != 0; }, nullptr); },
      [] {
          await([] { return y->load(relaxed) != 0; }, nullptr);
          as<std::uint64_t>(x).store(1, relaxed);
      },
      [] { y->store(1, relaxed); }}},
    {"another size after a plain store", "1 executions", {[] {
         x->store(1, relaxed);
         *reinterpret_cast<std::uint64_t*>(x) = 2;
         as<std::uint64_t>(x).store(3, relaxed);
     }}},
    {"eight bytes at an address for four",
     "8 bytes at word.1. are not aligned: plain store by r0",
     {[] { *reinterpret_cast<std::uint64_t*>(x + 1) = 1; }}},
    {"a wrong value that was there at first",
     "loads 0 from word.0., relaxed, the initial value",
     {[] { *data = x->load(relaxed), expect(*data, 1); }}},
    {"a global variable that two ranks write",
     "threads share a global variable.*plain store by r0.*plain store by r1",
     {[] { global = 1; }, [] { global = 2; }}},
    {"a global variable that a rank writes and another one loads",
     "threads share a global variable.*: store by r0.*load by r1",
     {[] { std::atomic_ref(global).store(1, relaxed); },
      [] { std::atomic_ref(global).load(relaxed); }}},
    {"a loop that polls a global variable", "r0.b0.t0 is in an endless loop", {[] {
         while (std::atomic_ref(global).load(relaxed) != 7) {
         }
     }}},
    {"a fence that does not help",
     "stores 1 into data, plain.*\\n.*r0.b0.t0 makes a fence, release\\n.*stores 1 into word",
     {[] {
          *data = 1;
          std::atomic_thread_fence(release);
          x->store(1, relaxed);
      },
      [] {
          wait(x, 1);
          await([] { return x->load(relaxed) == 1; }, nullptr);
          expect(*data, 0);
      }}},
    {"a longer execution fails first, a shorter one is told",
     "   2 r1.b0.t0 loads 1 from word.*\\n.*=> reads 1",
     {[] { x->store(1, relaxed); },
      [] {
          if (x->load(relaxed) == 0) {
              y->load(relaxed);
          }
          expect(x->load(relaxed), 7);
      }},
     {.shorten = 100}},
    {"some executions at random",
     "=> sampled, of perhaps",
     {[] { x->store(1, relaxed); }, [] { x->store(2, relaxed); }, [] { x->store(3, relaxed); },
      [] { y->store(x->load(relaxed), relaxed); }},
     {.sample = 3}},
    {"stores of equal values",
     "data race on data.*also if their values are equal",
     {[] { *data = 1; }, [] { *data = 1; }}},
    {"an addition in a poll", "r0.b0.t0 makes an addition or a swap in the poll of a wait", {[] {
         await([] { return x->fetch_add(1) != 0; }, nullptr);
     }}},
    {"a store in a poll", "r0.b0.t0 makes a store in the poll of a wait", {[] {
         await([] { return x->store(1, relaxed), true; }, nullptr);
     }}},
    {"seq_cst in a poll", "r0.b0.t0 makes a seq_cst access or fence in the poll of a wait", {[] {
         await([] { return x->load() != 0; }, nullptr);
     }}},

    {"a poll that loads nothing", "no thread can go on: r0.b0.t0 polls nothing$", {[] {
         await([seen = x->load()] { return seen != 0; }, nullptr);
     }}},

    {"a loop that polls",
     "1 executions",
     {[] { *data = 5, x->store(1, release); }, [] { poll(x, 1, acquire), expect(*data, 5); }}},
    {"a relaxed loop",
     "data race on data",
     {[] { *data = 5, x->store(1, release); }, [] { poll(x, 1, relaxed), expect(*data, 5); }}},
    {"a seq_cst loop",
     "2 executions",
     {[] { *data = 5, x->store(1); }, [] { poll(x, 1, seq_cst), expect(*data, 5); }}},
    {"a loop that never ends",
     "no thread can go on: r1.b0.t0 polls word.0. = 0x1 of step",
     {[] { x->store(1, release); }, [] { poll(x, 2, acquire); }}},
    {"a loop over two words",
     "^[0-9] executions",
     {[] { x->store(1, release); }, [] { y->store(1, release); },
      [] {
          while ((x->load(acquire) & y->load(acquire)) != 1) {
          }
      }}},
    {"a loop over two words, of which a late thread stores one",
     "^[0-9] executions",
     {[] {
          while ((x->load(acquire) & y->load(acquire)) != 1) {
          }
      },
      [] { x->store(1, release); }, [] { poll(x, 1, acquire), y->store(1, release); }}},
    {"loops for two rounds, which a late thread passes with one value",
     "2 executions",
     {[] { x->store(1, release), x->store(2, release); },
      [] {
          for (std::uint32_t round = 1; round <= 2; ++round) {
              while (x->load(acquire) < round) {
              }
          }
      }}},
    {"a loop that counts its polls",
     "reads 0",
     {[] { x->store(1, release); },
      [] {
          std::uint32_t seen = 0;
          for (int polls = 0; polls < 3 && seen == 0; ++polls) {
              seen = x->load(acquire);
          }
          expect(seen, 1);
      }}},
    {"a loop that polls and adds",
     "reads 4",
     {[] {
          while (x->load(relaxed) == 0 && y->fetch_add(1, relaxed) < 3) {
          }
          expect(y->load(relaxed) == 4 ? 4 : 0, 0);
      },
      [] { x->store(1, relaxed); }}},
    {"a lock", "2 executions", {&add_under_lock, &add_under_lock}},
    {"volatile: no order",
     "reads 0",
     {[] { x->store(5, relaxed), volatile_store(y, 1); },
      [] {
          while (volatile_load(y) != 1) {
          }
          expect(x->load(relaxed), 5);
      }}},
    {"volatile: fences",
     "1 executions",
     {[] {
          *data = 5;
          std::atomic_thread_fence(release);
          volatile_store(y, 1);
      },
      [] {
          while (volatile_load(y) != 1) {
          }
          std::atomic_thread_fence(acquire);
          expect(*data, 5);
      }}},
    {"the first of many loads reads an old value",
     "reads 0",
     {[] { x->store(1, relaxed), y->store(1, relaxed); },
      [] {
          await([] { return y->load(relaxed) == 1; }, nullptr);
          const std::uint32_t first = x->load(relaxed);
          for (int i = 0; i < 16; ++i) {
              y[i + 1].load(relaxed);
          }
          expect(first, 1);
      },
      [] {
          for (int i = 0; i < 16; ++i) {
              y[i + 1].store(1, relaxed);
          }
      }},
     {.most_executions = 10'000, .random_after = 0}},
    {"the end of a kernel is a fence",
     "1 executions",
     {[] { *data = 5, kernel_end(), x->store(1, relaxed); }, [] { wait(x, 1), expect(*data, 5); }}},
    {"the end of a kernel publishes nothing",
     "data race on data",
     {[] { *data = 5, kernel_end(), x->store(1, relaxed); }, [] { wait(x, 1), expect(*data, 5); }},
     {.kernel_end = KernelEnd::kNothing}},
};

/// Thread 0 of a block returns, the others synchronize.
Report leave_early(bool announced) {
    return explore({}, [=](Scene& scene) {
        data = scene.zeroed<std::uint32_t>(3, "data");
        scene.launch(0, {.threads = 3}, [=](const simt::ThreadBlock& block) {
            const unsigned t = block.thread_rank();
            for (std::uint32_t kernel = 1; kernel <= 3; ++kernel) {
                if (t != 0) {
                    data[t] = kernel;
                    block.sync();
                    expect(data[3 - t], kernel);
                } else if (announced) {
                    leave_block();
                }
                kernel_end();
            }
        });
    });
}

/// Rank 0 overwrites a word of rank 1 before it has been read, and once more afterwards.
bool unread_is_told() {
    const Report report = explore({}, [](Scene& scene) {
        x = scene.zeroed<Word>(1, "x", 1);
        y = scene.zeroed<Word>(1, "y", 0);
        data = scene.zeroed<std::uint32_t>(1, "data", 1);
        scene.launch(0, {}, [=](const auto&) {
            *data = 1, x->store(1, release);
            *data = 2, x->store(2, release);
            wait(y, 1);
            *data = 3, x->store(3, release);
        });
        scene.launch(1, {}, [=](const auto&) {
            wait(x, 2);
            expect(*data, 2), y->store(1, release);
            wait(x, 3);
            expect(*data, 4);
        });
    });
    std::vector<long> over;
    for (const ReportedStep& step : report.steps) {
        if (step.what == "plain store") {
            over.push_back(step.over);
        }
    }
    const bool right = over == std::vector<long>{-1, 0, -1};
    if (!right) {
        fmt::print("stores over unread data: the second of three must cite step 0, and no other\n");
    }
    return is_as_expected("stores over unread data", "reads 3", report) && right;
}

bool wide_accesses_are_counted() {
    const Report report = explore({}, [](Scene& scene) {
        auto* const words = scene.zeroed<std::uint64_t>(8, "words", 0);
        scene.launch(1, {}, [=, bytes = 40](const auto&) { std::memset(words, 0, bytes); });
    });
    return is_as_expected("40 bytes over a link", "1 executions", report) && report.over_links == 3;
}

bool polls_over_links_are_seen() {
    bool right = true;
    for (const int owner : {0, 1}) {
        const Report report = explore({}, [&](Scene& scene) {
            auto* const flag = scene.zeroed<std::uint32_t>(1, "flag", owner);
            auto* const data = scene.zeroed<std::uint32_t>(1, "data", 0);
            scene.launch(0, {}, [=](const auto&) {
                simt::store(data, 5U, simt::Order::kRelaxed);
                simt::store(flag, 1U, simt::Order::kRelease);
            });
            scene.launch(1, {}, [=](const auto&) {
                simt::await([&] { return simt::load(flag, simt::Order::kAcquire) == 1; }, nullptr);
                simt::load(data, simt::Order::kRelaxed);  // once: it is no poll
            });
        });
        right = is_as_expected("a poll", "1 executions", report) &&
                report.polls_over_links == (owner == 0) && right;
    }
    return right;
}

// A scene's author chooses such texts.
bool texts_are_quoted() {
    Report report;
    report.why = "a \"b\" \\ c\n\t\x1b[m";
    const std::string json = as_json(report, "two\nlines", false);
    const bool right =
        json.starts_with(R"({"protocol":"two\u000alines",)") &&
        json.find(R"("why":"a \"b\" \\ c\u000a\u0009\u001b[m",)") != std::string::npos;
    if (!right) {
        fmt::print("texts with quotes and control characters are no JSON: {}\n", json);
    }
    return right;
}

}  // namespace
}  // namespace symm::explore

int main() {
    using namespace symm::explore;
    int wrong = 0;
    for (const Case& one : kCases) {
        const Report report = explore(one.options, [&](Scene& scene) {
            x = scene.zeroed<Word>(2, "word");
            y = scene.zeroed<Word>(17, "y");
            data = scene.zeroed<std::uint32_t>(1, "data");
            for (std::size_t rank = 0; rank < one.ranks.size(); ++rank) {
                scene.launch(static_cast<int>(rank), {},
                             [&, rank](const auto&) { one.ranks[rank](); });
            }
        });
        wrong += is_as_expected(one.name, one.report, report) ? 0 : 1;
    }
    for (const bool right :
         {is_as_expected("a thread leaves", "1 executions", leave_early(true)),
          is_as_expected("a thread leaves unannounced", "waits at a barrier", leave_early(false)),
          unread_is_told(), wide_accesses_are_counted(), polls_over_links_are_seen(),
          texts_are_quoted()}) {
        wrong += right ? 0 : 1;
    }
    fmt::print("{} reports are wrong\n", wrong);
    return wrong == 0 ? 0 : 1;
}
