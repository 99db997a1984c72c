#pragma once
/// \file
/// An exploration: its threads, their waits, and what the accesses of an execution have done.
/// threads.cpp lets them take turns, waits.cpp tries and ends their waits, accesses.cpp makes their
/// accesses, executions.cpp runs one execution after the other.

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/explore/await.hpp"
#include "common/explore/explore.hpp"
#include "common/explore/model.hpp"
#include "common/explore/races.hpp"
#include "common/explore/search.hpp"

// As emu/fibers.cpp has it: keeps the registers on the stack, its pointer in *kept, and goes on
// where the stack `next` was left.
extern "C" void symm_explore_switch(void** kept, void* next);

namespace symm::explore {

constexpr std::size_t kSceneBytes = std::size_t{64} << 20;
constexpr std::size_t kStackBytes = 128 * 1024;

enum class State { kReady, kWaits, kAtBarrier, kEnded };

/// A wait of a thread: the poll, and the words that it read when it was last tried.
struct Wait {
    bool (*poll)(void*) = nullptr;
    void* context = nullptr;
    const std::uint32_t* gave_up = nullptr;  ///< Null: this wait cannot give up.
    Awaited how = Awaited::kTrue;            ///< How it ended.
    bool tried = false;
    std::vector<std::pair<std::size_t, std::uint64_t>> polled;  ///< Locations, versions of them.
    std::vector<Move> moves;
};

struct Barrier {
    std::string name;
    std::size_t expected = 0;
    std::vector<int> waiting;
    bool vote = false, result = false;
    bool ends_kernel = false;
    std::uint64_t passed = 0;  ///< How often all have passed it.
};

/// A function that a thread is in, and those that called it.
struct Call {
    void* place;
    const Call* caller;
};

struct Thread {
    int rank = 0, block = 0, number = 0;
    State state = State::kReady;
    std::function<void()> body;
    std::unique_ptr<char, void (*)(char*)> stack{nullptr, nullptr};
    void* sp = nullptr;
    simt::ThreadBlock handle;
    Mind mind;
    Wait wait;
    std::array<const StoreRecord*, 2> last_reads{};  ///< The newest first.
    const Call* call = nullptr;                      ///< The function that it is in.
};

/// A step as the log stores it; reports turn it into a Step.
struct Logged {
    int thread;
    const char* what;
    int order;  ///< -1: none.
    std::uintptr_t address;
    std::uint64_t value;
    long from, newest;
    void* place;
    const Call* call;
};

struct Named {
    std::uintptr_t begin, end;
    std::size_t element;  ///< Bytes.
    std::string name;
};

enum class End { kComplete, kAsleep, kFailed };

/// An exploration. There is one at a time: `running`.
class Runtime {
public:
    Runtime(const Options& options, const std::function<void(Scene&)>& setup)
        : options_(options), setup_(setup), search_(options_) {
        if (scene_ == MAP_FAILED) {
            throw std::runtime_error("no memory for a scene");
        }
    }
    ~Runtime() { ::munmap(scene_, kSceneBytes); }

    Report explore();

    // For Scene and the threads.
    void* allocate(std::size_t count, std::size_t size, const std::string& name, int rank);
    void name(const void* memory, std::size_t count, std::size_t size, const std::string& name,
              int rank);
    void launch(int rank, const Shape& shape,
                const std::function<void(const simt::ThreadBlock&)>& body);
    bool pass_barrier(Barrier& barrier, bool vote);
    void pass_kernel_end() { pass_barrier(kernel_ends_.at(current_->rank), false); }
    Awaited await(bool (*poll)(void*), void* context, const std::uint32_t* gave_up);
    void acquire_both() {
        const Inside inside(*this);
        for (const StoreRecord* store : current_->last_reads) {
            current_->mind.now.join(store->released);
        }
    }
    [[noreturn]] void fail(const std::string& why);
    void crash(void* address) {
        fail(fmt::format("{} accesses address {}", name_of(*current_), address));
    }

    // For the instrumentation.
    bool is_running() const { return current_ != nullptr && !inside_; }
    bool holds(const volatile void* address) const {
        return reinterpret_cast<std::uintptr_t>(address) -
                   reinterpret_cast<std::uintptr_t>(scene_) <
               kSceneBytes;
    }
    void plain(void* address, std::size_t size, bool store, void* place);
    std::uint64_t load(std::uintptr_t address, unsigned size, int order, void* place);
    void store(std::uintptr_t address, unsigned size, std::uint64_t value, int order, void* place);
    std::uint64_t update(std::uintptr_t address, unsigned size, int order, int failure, void* place,
                         const std::uint64_t* expected,
                         std::uint64_t (*change)(std::uint64_t, std::uint64_t),
                         std::uint64_t operand);
    void fence(int order) {
        Memory::fence(order, number_of(*current_), current_->mind);
        if (!trying_) {
            log("fence", order, 0, 0, nullptr);
        }
    }
    void enter(void* place) { current_->call = &calls_.emplace_back(Call{place, current_->call}); }
    void leave() {
        if (current_->call != nullptr) {
            current_->call = current_->call->caller;
        }
    }

    /// While one lives, the explorer's own accesses are not the scene's.
    struct Inside {
        explicit Inside(Runtime& runtime) : runtime_(runtime), before_(runtime.inside_) {
            runtime.inside_ = true;
        }
        ~Inside() { runtime_.inside_ = before_; }
        Runtime& runtime_;
        bool before_;
    };

private:
    End execute();
    void run_ready();
    void resume(Thread& thread);
    static void live();
    void add_moves(Thread& thread);
    bool is_stale(const Thread& thread);
    void make(Thread& thread, const Move& move);
    std::uint64_t version_of(std::size_t location) {
        return memory_[location].stores.size() + (memory_[location].generation << 32);
    }
    bool call_poll(Thread& thread);
    StoreRecord& chosen(std::size_t location, bool for_update,
                        const std::uint64_t* expected = nullptr);
    void undo();
    void access(std::uintptr_t address, std::size_t size, Kind kind, void* place);
    void put(std::size_t location, std::uint64_t value, int order, const StoreRecord* behind,
             void* place);
    int number_of(const Thread& thread) const {
        return static_cast<int>(&thread - threads_.data());
    }
    long log(const char* what, int order, std::uintptr_t address, std::uint64_t value, void* place,
             long from = -1, long newest = -1);
    static std::string name_of(const Thread& thread) {
        return fmt::format("r{}.b{}.t{}", thread.rank, thread.block, thread.number);
    }
    std::string name_of(std::uintptr_t address) const;
    std::string deadlock();
    std::vector<Step> steps() const;
    std::vector<std::uint64_t> graph();

    Options options_;
    const std::function<void(Scene&)>& setup_;
    Search search_;
    char* const scene_ =
        static_cast<char*>(::mmap(nullptr, kSceneBytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    Memory memory_{scene_};
    Races races_;
    std::size_t used_ = 0;
    std::vector<Named> names_;
    std::vector<Thread> threads_ = std::vector<Thread>(kMostThreads);
    std::size_t thread_count_ = 0;
    std::deque<Barrier> barriers_;
    std::map<int, Barrier> kernel_ends_;
    std::deque<simt::HostBlock> blocks_;
    std::deque<std::vector<simt::HostWarp>> warps_;
    std::deque<std::array<Barrier, simt::kNamedBarriers>> named_barriers_;
    std::vector<Logged> log_;
    std::deque<Call> calls_;
    std::vector<std::vector<std::uint64_t>> reads_;  ///< Of each thread: what its loads read.

    Thread* current_ = nullptr;
    void* scheduler_sp_ = nullptr;
    bool inside_ = false;
    sigjmp_buf failed_{};
    std::string why_;
    std::vector<std::size_t> involved_;
    std::exception_ptr error_;
    bool begin_again_ = false;  ///< A location has a writer that was not known.

    // While a poll is tried or made.
    const Move* making_ = nullptr;  ///< Null: it is tried.
    bool trying_ = false;
    std::size_t loads_ = 0;            ///< Of this call.
    std::vector<std::size_t> digits_;  ///< Of each load: which of the possible stores is tried.
    std::vector<std::size_t> counts_;  ///< How many there are.
    std::vector<std::uint64_t> read_;
    const void* poll_frame_ = nullptr;  ///< The poll's own variables lie below, and end with it.
    std::vector<std::pair<char*, std::vector<char>>> overwritten_;
};

extern Runtime* running;  ///< Null where there is none.

}  // namespace symm::explore
