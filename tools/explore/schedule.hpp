#pragma once
/// \file
/// The schedule of an execution: which thread runs, and where threads meet.
///
/// 1. launch() makes the threads of a rank. Each is a fiber.
/// 2. run_ready() lets one thread after another run, each until it suspends itself or ends.
/// 3. A thread suspends itself in meet() until all that the meeting point expects have come. Then
///    all of them know what each of them knew, and are ready.
/// 4. A thread also suspends itself in a wait (waits.hpp). When none is ready any more, the loop
///    over executions chooses how one of the waits ends.

#include <fmt/core.h>

#include <array>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "common/sys/fiber.hpp"
#include "tools/explore/log.hpp"
#include "tools/explore/model.hpp"
#include "tools/explore/search.hpp"

namespace symm::explore {

struct SceneBlock;
struct Launch;

/// kSpins: its loop polls, and does not end with what it has read. kQueued: it waits for another
/// launch of its stream (streams.hpp).
enum class ThreadState { kReady, kWaits, kAtBarrier, kSpins, kQueued, kEnded };

/// A wait of a thread: the poll, and the words that it read when it was last tried.
struct PendingWait {
    const std::function<bool()>* poll = nullptr;
    const std::uint32_t* gave_up = nullptr;    ///< Null: this wait cannot give up.
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

/// A load of a thread that has had no effect since.
struct IdleLoad {
    std::vector<std::uint64_t> state;  ///< The thread's registers and stack before it.
    std::size_t location;
    std::size_t earlier;  ///< How many loads its thread has made before, polls included.
    std::uint64_t read;   ///< The store's id.
    std::uint64_t value;
};

/// Loads without an effect since, outside of waits.
struct IdleLoads {
    std::vector<IdleLoad> loads;
    std::size_t count = 0;  ///< How many there were, also before `loads` was kept.
    std::map<std::size_t, std::vector<std::size_t>> perhaps_spins;  ///< By load: spins_, if so.

    void had_effect() {
        count = 0;
        if (!loads.empty()) {
            loads.clear();
            perhaps_spins.clear();
        }
    }
};

struct Thread {
    int index = 0;  ///< Among all threads of the scene.
    int rank = 0, block = 0, number = 0;
    SceneBlock* scene_block = nullptr;
    Launch* launch = nullptr;  ///< Null if its rank has no stream.
    char* statics = nullptr;   ///< Its block's copy of the __shared__ variables.
    ThreadState state = ThreadState::kReady;
    bool gave_up = false;  ///< In a wait; between kernels, all threads of its rank.
    std::unique_ptr<Fiber> fiber;
    std::function<void(Thread&)> body;
    std::exception_ptr error;  ///< The explorer's: kernels throw nothing.
    simt::ThreadBlock handle;
    const void* stack_base = nullptr;
    ThreadView view;
    PendingWait wait;
    std::array<const StoreRecord*, 2> last_reads{};  ///< The newest first.
    std::vector<std::uint64_t> reads;                ///< The ids of all stores that it has read.
    IdleLoads idle;
    const Frame* frame = nullptr;    ///< The function that it is in.
    bool through_multicast = false;  ///< Its accesses are those of a multicast address.
    /// With which rank its additions to all begin in this execution.
    std::optional<std::size_t> adds_first_to = {};

    std::string name() const { return fmt::format("r{}.b{}.t{}", rank, block, number); }
    /// Called by itself: goes on when it is resumed.
    void suspend(ThreadState as) {
        state = as;
        fiber->suspend();
    }
};

/// Where threads wait for each other.
struct MeetingPoint {
    const char* name;
    std::size_t expected = 0;
    bool ends_kernel = false;
    bool orders = true;  ///< Memory.
    std::vector<Thread*> waiting = {};
    bool vote = false, result = false;
    std::uint64_t passed = 0;  ///< How often all have passed it.
    std::size_t left = 0;      ///< Threads that it no longer waits for,
    NumberSet left_past = {};  ///< and the choices on which that depends.
};

struct SceneBlock final : simt::HostBlock {
    bool sync(bool vote) override;
    void sync_warp(unsigned warp) override;
    void exchange_warp(unsigned warp) override;
    void sync_named(unsigned number, unsigned threads) override;
    void wait_for_predecessor() override;
    void launch_dependents() override;
    simt::MulticastCopies copies_of(const void* address, simt::SwitchAccess access) override;

    dim3 dim;                           ///< Threads.
    std::vector<std::uint64_t> values;  ///< HostBlock::exchange.
    MeetingPoint whole{"block.sync"};
    std::vector<MeetingPoint> warps, exchanges;
    std::size_t shared_bytes = 0;
    std::map<unsigned, MeetingPoint> named;  ///< By number.
    MeetingPoint* kernel_end = nullptr;      ///< Null in a stream.
};

class Schedule {
public:
    Schedule(KernelEnd kernel_end, SceneMemory& memory, Log& log)
        : kernel_end_(kernel_end), memory_(memory), log_(log) {}

    void clear();
    /// Adds a rank's threads, each of which calls `body`, and returns them. Blocks get their memory
    /// from the scene. `in_stream`: they are one kernel, and not several with ends between them.
    std::span<Thread> launch(Scene& scene, int rank, const Shape& shape, bool in_stream,
                             const std::function<void(Thread&)>& body);
    std::span<Thread> threads() { return {threads_.data(), count_}; }
    /// The thread on whose stack this address is, or null.
    const Thread* owner_of_stack(std::uintptr_t address) const;
    /// Whether this address is of shared memory of another block than the thread's.
    bool is_shared_of_another(const Thread& thread, std::uintptr_t address) const;
    /// Runs threads until none is ready. Throws what a thread threw.
    void run_ready();

    // For a thread that runs.
    /// Returns whether any of those that have met voted true.
    bool meet(Thread& thread, MeetingPoint& point, bool vote = false);
    void leave_block(Thread& thread);

private:
    void pass(MeetingPoint& point) const;
    void begin_kernel(const Thread& thread) const;

    const KernelEnd kernel_end_;
    SceneMemory& memory_;
    Log& log_;
    std::vector<Thread> threads_ = std::vector<Thread>(kMostThreads);  ///< With their fibers.
    std::size_t count_ = 0;                                            ///< In this execution.
    /// All stacks lie between these addresses.
    std::pair<std::uintptr_t, std::uintptr_t> stacks_{~std::uintptr_t{0}, 0};
    std::pair<std::uintptr_t, std::uintptr_t> shared_{~std::uintptr_t{0}, 0};  ///< Likewise.
    std::map<int, MeetingPoint> kernel_ends_;                                  ///< By rank.
    std::deque<SceneBlock> blocks_;
};

}  // namespace symm::explore
