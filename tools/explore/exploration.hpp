#pragma once
/// \file
/// An exploration: its threads, their waits, and what the accesses of an execution have done.
/// threads.cpp lets them take turns, waits.cpp tries and ends their waits, accesses.cpp makes their
/// accesses, spins.cpp recognizes loops that poll, exploration.cpp runs one execution after the
/// other, steps.cpp reports one.

#include <fmt/core.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <csetjmp>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/sys/fiber.hpp"
#include "tools/explore/explore.hpp"
#include "tools/explore/model.hpp"
#include "tools/explore/races.hpp"
#include "tools/explore/search.hpp"

namespace symm::explore {

constexpr std::size_t kSceneBytes = std::size_t{64} << 20;

/// kSpins: its loop polls, and does not end with what it has read.
enum class ThreadState { kReady, kWaits, kAtBarrier, kSpins, kEnded };

/// A wait of a thread: the poll, and the words that it read when it was last tried.
struct PendingWait {
    const std::function<bool()>* poll = nullptr;
    const std::uint32_t* gave_up = nullptr;    ///< Null: this wait cannot give up.
    bool is_real = true;                       ///< Else one load.
    simt::Awaited how = simt::Awaited::kTrue;  ///< How it ended.
    bool tried = false;
    struct Polled {
        std::size_t location;
        std::uint64_t version = 0;
        std::uint64_t read = 0;  ///< By a thread that spins.
    };
    std::vector<Polled> polled = {};
    std::vector<ThreadMove> moves = {};
};

/// Where threads wait for each other. All then know what each of them knew.
struct MeetingPoint {
    const char* name;
    std::size_t expected = 0;
    bool ends_kernel = false;
    std::vector<int> waiting = {};
    bool vote = false, result = false;
    std::uint64_t passed = 0;  ///< How often all have passed it.
    std::size_t left = 0;      ///< Threads that it no longer waits for,
    NumberSet left_past = {};  ///< and the choices on which that depends.
};

struct SceneBlock final : simt::HostBlock {
    bool sync(bool vote) override;
    void sync_warp(unsigned warp) override;
    void sync_named(unsigned number, unsigned threads) override;

    dim3 dim;                           ///< Threads.
    std::vector<std::uint64_t> values;  ///< HostBlock::exchange.
    MeetingPoint whole{"block.sync"};
    std::vector<MeetingPoint> warps;
    std::map<unsigned, MeetingPoint> named;  ///< By number.
    char* statics = nullptr;                 ///< Its __shared__ variables, while it does not run.
};

/// A function that a thread is in, and those that called it.
struct Frame {
    void* place;
    const Frame* caller;
};

/// A load of a thread that has had no effect since.
struct IdleLoad {
    std::vector<std::uint64_t> state;  ///< The thread's registers and stack before it.
    std::size_t location;
    std::size_t earlier;  ///< How many loads its thread has made before, polls included.
    std::uint64_t read;   ///< The store's id.
    std::uint64_t value;
};

struct Thread {
    int rank = 0, block = 0, number = 0;
    SceneBlock* scene_block = nullptr;
    ThreadState state = ThreadState::kReady;
    bool gave_up = false;  ///< In a wait; between kernels, all threads of its rank.
    std::unique_ptr<Fiber> fiber;
    std::function<void()> body;
    simt::ThreadBlock handle;
    ThreadView view;
    PendingWait wait;
    std::array<const StoreRecord*, 2> last_reads{};  ///< The newest first.
    std::vector<std::uint64_t> reads;                ///< The ids of all stores that it has read.
    const Frame* frame = nullptr;                    ///< The function that it is in.
    const void* stack_base = nullptr;
    std::vector<IdleLoad> idle;  ///< Loads without an effect since, outside of waits.
    std::size_t idle_loads = 0;  ///< How many there were, also before `idle` was kept.
    std::map<std::size_t, std::vector<std::size_t>> perhaps_spins;  ///< By load: spins_, if so.
};

/// An access, or none.
struct Access {
    std::uintptr_t address = 0;  ///< As the model knows it. 0: none.
    std::size_t size = 0;
    void* place = nullptr;                        ///< In the code.
    std::optional<std::memory_order> order = {};  ///< Nothing: a plain access.
};

/// An atomic access that a kernel makes.
struct AtomicAccess : Access {
    const void* frame = nullptr;  ///< That of the instrumentation's function.
    void* real = nullptr;         ///< Where the kernel finds the word.

    /// Whether it is of a __shared__ variable, which the model knows by another address.
    bool is_static() const {
        return real != nullptr && reinterpret_cast<std::uintptr_t>(real) != address;
    }
};

/// The stores that a load could read, the newest first: their steps (-1: initial) and values.
using Choices = std::vector<std::pair<long, std::uint64_t>>;

/// A step as the log stores it; reports turn it into a ReportedStep.
struct LoggedStep {
    const char* what;
    Access access = {};
    std::uint64_t value = 0;
    long from = -1;
    Choices choices = {};  ///< For a load.
    int thread = -1;
    const Frame* frame = nullptr;
    std::size_t bytes = 0;   ///< For a plain access: where its bytes begin in `bytes_`.
    std::string until = {};  ///< As ReportedStep's.
};

/// A part of the scene's memory that has a name.
struct NamedMemory {
    std::uintptr_t begin, end;
    std::size_t element;  ///< Bytes.
    Shown shown;
    int rank;
    std::string name;
};

/// A value that a load of a poll shall return.
struct AssumedLoad {
    const Location* word;
    std::uint64_t value;
};

/// What belongs to one execution. The next one begins with a new one.
struct Execution {
    std::size_t used_ = 0;  ///< Bytes of the scene.
    std::vector<NamedMemory> names_;
    std::size_t thread_count_ = 0;
    std::map<int, MeetingPoint> kernel_ends_;  ///< By rank.
    std::deque<SceneBlock> blocks_;
    SceneBlock* with_statics_ = nullptr;  ///< Its __shared__ variables are at their places.
    std::deque<Frame> frames_;

    Thread* current_ = nullptr;
    bool inside_ = true;
    struct {
        AtomicAccess access = {};
        bool store = false;
        std::uint64_t newest = 0;  ///< What belongs into memory.
    } volatile_;                   ///< The last access, if it was volatile.
    bool any_spins_ = false;
    std::map<std::uintptr_t, long> outside_;  ///< The last store to each global variable: its step.
    std::size_t constant_loads_ = 0;          ///< Of global variables without one.
    std::string why_;
    std::vector<long> involved_;

    // While a poll is tried or made.
    const ThreadMove* making_ = nullptr;  ///< Null: it is tried.
    bool trying_ = false;
    std::size_t loads_ = 0;  ///< Made in this call.
    struct Digit {
        std::size_t taken, count;
    };
    std::vector<Digit> digits_;  ///< For each load, which of how many stores is tried.
    std::vector<std::uint64_t> read_;
    const std::vector<AssumedLoad>* assumed_ = nullptr;  ///< Null: the loads return what is stored.
    std::vector<std::string> conditions_;                ///< ReportedStep::until of each load.
    Choices choices_;                                    ///< Of the load that is being made.
    const void* poll_frame_ = nullptr;  ///< The poll's own variables lie below, and end with it.
    std::vector<std::pair<char*, std::vector<char>>> overwritten_;
};

/// There is one exploration at a time: `running`.
class Exploration final : public Scene, private Execution {
public:
    Exploration(const Options& options, const std::function<void(Scene&)>& setup);
    ~Exploration();

    Report explore();

    // For the scene's setup.
    void launch(int rank, const Shape& shape,
                const std::function<void(const simt::ThreadBlock&)>& body) override;
    void* allocate_bytes(std::size_t bytes) override;
    void name_bytes(const void* memory, std::size_t bytes, std::size_t element, Shown shown,
                    const std::string& name, int rank) override;

    // For the threads.
    bool meet(MeetingPoint& point, bool vote = false);
    void end_kernel() { meet(kernel_ends_.at(current_->rank)); }
    void leave_block();
    /// `is_real`: it is a wait of the scene's, not a load that may return several values.
    simt::Awaited await(const std::function<bool()>& poll, const std::uint32_t* gave_up,
                        bool is_real = true);
    void acquire_both();
    [[noreturn]] void fail(const std::string& why);
    void crash(void* address) {
        fail(fmt::format("{} accesses address {}", name_of(*current_), address));
    }

    // For the instrumentation.
    bool runs_thread() const { return current_ != nullptr && !inside_; }
    bool holds(std::uintptr_t address) const {
        return address - reinterpret_cast<std::uintptr_t>(scene_) < kSceneBytes;
    }
    /// The address by which the model knows a byte: that of a __shared__ variable depends on the
    /// block.
    std::uintptr_t modelled(const volatile void* address) const {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        const std::uintptr_t in_statics = at - reinterpret_cast<std::uintptr_t>(statics_);
        return in_statics < static_bytes_
                   ? reinterpret_cast<std::uintptr_t>(with_statics_->statics) + in_statics
                   : at;
    }
    /// Where the bytes of such an address are now.
    char* real_of(std::uintptr_t address) const {
        const std::uintptr_t in_statics =
            with_statics_ == nullptr
                ? static_bytes_
                : address - reinterpret_cast<std::uintptr_t>(with_statics_->statics);
        return in_statics < static_bytes_ ? statics_ + in_statics
                                          : reinterpret_cast<char*>(address);
    }
    const simt::ThreadBlock& this_block() const { return current_->handle; }
    dim3 block_dim() const { return current_->scene_block->dim; }
    /// The address must be a multiple of `alignment`.
    void plain(void* address, std::size_t size, bool store, void* place, std::size_t alignment);
    std::uint64_t load(const AtomicAccess& access);
    void store(const AtomicAccess& access, std::uint64_t value);
    /// Loads, then stores `change(old)` directly after; only loads, with the order `failure`, if
    /// the old value is not the expected one. Returns the old value.
    std::uint64_t update(const AtomicAccess& access,
                         const std::function<std::uint64_t(std::uint64_t)>& change,
                         std::optional<std::uint64_t> expected, std::memory_order failure);
    /// Clang announces volatile accesses before it makes them: lets the load find its value in
    /// memory; takes what was stored there. As in PTX, they are relaxed.
    void volatile_load(const AtomicAccess& access);
    void volatile_store(const AtomicAccess& access);
    void fence(std::memory_order order, const AtomicAccess& access);
    /// An access of memory that is not the scene's.
    void outside(const Access& access, bool store);
    void enter(void* place);
    void leave();

private:
    enum class End { kComplete, kAsleep, kFailed };
    /// While one lives, the explorer's own accesses are not the scene's.
    class Inside {
    public:
        explicit Inside(Exploration& all) : all_(all), before_(all.inside_) {
            all.inside_ = true;
            if (!before_ && all.volatile_.access.address != 0) {
                all.settle_volatile();
            }
        }
        ~Inside() { all_.inside_ = before_; }

    private:
        Exploration& all_;
        bool before_;
    };

    End execute();
    bool fails_at_random();
    void begin_execution();
    void run_ready();
    void add_thread(int rank, SceneBlock& block, unsigned block_number, unsigned number,
                    const std::function<void(const simt::ThreadBlock&)>& body);
    static void live(void* thread);
    void resume(Thread& thread);
    void bring_statics(SceneBlock& block);
    void add_moves(Thread& thread);
    bool is_stale(const Thread& thread);
    void make(Thread& thread, const ThreadMove& move);
    std::uint64_t version_of(std::size_t location) {
        return memory_[location].stores.size() + (memory_[location].generation << 32);
    }
    bool call_poll(Thread& thread);
    bool try_poll(Thread& thread);
    bool ends_with(Thread& thread, const std::vector<AssumedLoad>& loads);
    std::string condition(Thread& thread, std::vector<AssumedLoad> loads, std::size_t i);
    std::vector<AssumedLoad> loads_of(const PendingWait& wait,
                                      const std::vector<std::uint64_t>& reads);
    void log_endless(Thread& thread);
    bool is_polling() const { return trying_ || making_ != nullptr; }
    StoreRecord& chosen(std::size_t location, bool for_update,
                        std::optional<std::uint64_t> expected = {});
    void pass(MeetingPoint& point);
    std::size_t word(const AtomicAccess& access);
    [[noreturn]] void fail_in_poll(const std::string& what);
    void settle_volatile();
    void had_effect();
    void add_idle_load(std::vector<std::uint64_t> state, std::size_t location, std::uint64_t value);
    std::size_t history_since(const IdleLoad& load) const;
    std::vector<std::uint64_t> state_of_thread(const AtomicAccess& access) const;
    void spin_if_known(const std::vector<std::uint64_t>& state, std::size_t location);
    bool is_redundant();
    std::string described(long step) const;
    bool has_other_writer(std::size_t location);
    void read(std::size_t location, const StoreRecord& store, const Access& access);
    void check_access(const Access& access, bool store, long step);
    void put(std::size_t location, std::uint64_t value, const AtomicAccess& access,
             const StoreRecord* behind);
    int number_of(const Thread& thread) const {
        return static_cast<int>(&thread - threads_.data());
    }
    void check_endless();
    long log(LoggedStep step);
    void log_stored();
    static std::string name_of(const Thread& thread) {
        return fmt::format("r{}.b{}.t{}", thread.rank, thread.block, thread.number);
    }
    const NamedMemory* memory_at(std::uintptr_t address) const;
    /// What makes the next flag of a packet, or the next number.
    std::uint64_t unit_of(const Location& word) const {
        const NamedMemory* const memory = memory_at(word.address);
        return memory != nullptr && memory->shown == Shown::kPacket ? std::uint64_t{1} << 32 : 1;
    }
    std::string name_of(std::uintptr_t address) const;
    std::string value_of(std::uintptr_t address, const char* bytes, std::size_t size) const;
    std::string deadlock();
    void report_steps(Report& report) const;
    std::vector<std::uint64_t> graph();

    const Options& options_;
    const std::function<void(Scene&)>& setup_;
    Search search_;
    // Wished for at one place, whose low half is no number of a scene's.
    char* const scene_ = static_cast<char*>(
        ::mmap(reinterpret_cast<void*>(0x5a5a'5a000000), kSceneBytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    Memory memory_{scene_};
    Races races_;
    std::vector<Thread> threads_ = std::vector<Thread>(kMostThreads);
    char* const statics_;  ///< The places of all __shared__ variables.
    const std::size_t static_bytes_;
    std::vector<char> initial_;    ///< The scene's memory after its setup.
    std::vector<LoggedStep> log_;  ///< As large as it was: new memory for each execution costs.
    std::vector<char> bytes_;      ///< Loaded or stored by the plain accesses of the log.
    sigjmp_buf failed_{};
    std::exception_ptr error_;
    std::set<std::size_t> spins_;  ///< Loads after which a thread polls in vain: hashes.
    bool begin_again_ = false;     ///< Something was learnt: a writer of a location, or a spin.
};

extern Exploration* running;  ///< Null if there is none.

/// Whether a thread of a scene runs, and not the explorer itself.
inline bool is_running() {
    return running != nullptr && running->runs_thread();
}

}  // namespace symm::explore
