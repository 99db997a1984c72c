#include "common/explore/runtime.hpp"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "common/explore/await.hpp"
#include "common/explore/explore.hpp"
#include "common/explore/model.hpp"
#include "common/explore/places.hpp"
#include "common/explore/races.hpp"
#include "common/explore/search.hpp"

// As emu/fibers.cpp has it: keeps the registers on the stack, its pointer in *kept, and goes on
// where the stack `next` was left.
extern "C" void symm_explore_switch(void** kept, void* next);
asm(R"(
    .text
    .globl symm_explore_switch
    .type symm_explore_switch, @function
symm_explore_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size symm_explore_switch, .-symm_explore_switch
)");

namespace symm::explore {
namespace {

constexpr std::size_t kSceneBytes = std::size_t{64} << 20;
constexpr std::size_t kStackBytes = 128 * 1024;

enum class State { kReady, kWaits, kAtBarrier, kEnded };

/// What a wait tries: the poll, and the words that it has read when it was tried last.
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

/// As the log has a step; Step is made of it where it is told.
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
    std::string name;
};

enum class End { kComplete, kAsleep, kFailed };

/// An exploration. There is one at a time: `running`.
class Runtime {
public:
    Runtime(const Options& options, const std::function<void(Scene&)>& setup)
        : options_(options), setup_(setup), search_(options_) {
        void* const memory = ::mmap(nullptr, kSceneBytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            throw std::runtime_error("no memory for a scene");
        }
        scene_ = static_cast<char*>(memory);
    }
    ~Runtime() { ::munmap(scene_, kSceneBytes); }

    Report explore();

    // For Scene and the threads.
    void* allocate(std::size_t bytes, const std::string& name, int rank);
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
    std::uint64_t update(std::uintptr_t address, unsigned size, int order, void* place,
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
    StoreRecord& chosen(std::size_t location, bool for_update);
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
    Memory memory_;
    Races races_;
    char* scene_ = nullptr;
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

Runtime* running = nullptr;

// --- threads -------------------------------------------------------------------------------------

void Runtime::live() {
    Thread& thread = *running->current_;
    try {
        running->inside_ = false;
        thread.body();
    } catch (...) {  // by the explorer: kernels throw nothing
        running->error_ = std::current_exception();
    }
    running->inside_ = true;
    thread.state = State::kEnded;
    symm_explore_switch(&thread.sp, running->scheduler_sp_);
    std::abort();
}

void Runtime::resume(Thread& thread) {
    current_ = &thread;
    symm_explore_switch(&scheduler_sp_, thread.sp);
    current_ = nullptr;
    if (error_) {
        std::rethrow_exception(std::exchange(error_, nullptr));
    }
}

void* Runtime::allocate(std::size_t bytes, const std::string& name, int rank) {
    used_ = (used_ + 127) / 128 * 128;
    if (bytes > kSceneBytes - used_) {
        throw std::runtime_error("the scene's memory is too large");
    }
    char* const memory = scene_ + used_;
    used_ += bytes;
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    names_.push_back({begin, begin + bytes, rank < 0 ? name : fmt::format("r{}.{}", rank, name)});
    return memory;
}

void Runtime::launch(int rank, const Shape& shape,
                     const std::function<void(const simt::ThreadBlock&)>& body) {
    Barrier& end = kernel_ends_[rank];
    end.name = "kernel end";
    end.expected += std::size_t{shape.blocks} * shape.threads;
    end.ends_kernel = true;
    for (unsigned b = 0; b < shape.blocks; ++b) {
        simt::HostBlock& block = blocks_.emplace_back();
        block.group_index = dim3(b);
        block.grid_dim = dim3(shape.blocks);
        block.size = shape.threads;
        if (shape.shared_bytes != 0) {
            block.shared = allocate(shape.shared_bytes, fmt::format("shared{}", b), rank);
        }
        Barrier& whole = barriers_.emplace_back();
        whole.name = "block.sync";
        whole.expected = shape.threads;
        block.sync = [](void* barrier, bool vote) {
            return running->pass_barrier(*static_cast<Barrier*>(barrier), vote);
        };
        block.sync_state = &whole;
        auto& warps = warps_.emplace_back((shape.threads + simt::kWarpSize - 1) / simt::kWarpSize);
        for (unsigned w = 0; w < warps.size(); ++w) {
            Barrier& warp = barriers_.emplace_back();
            warp.name = "warp.sync";
            warp.expected = std::min(simt::kWarpSize, shape.threads - w * simt::kWarpSize);
            warps[w].sync = [](void* barrier) {
                running->pass_barrier(*static_cast<Barrier*>(barrier), false);
            };
            warps[w].state = &warp;
        }
        block.warps = warps.data();
        auto& named = named_barriers_.emplace_back();
        block.named_state = &named;
        block.named_sync = [](void* state, unsigned number, unsigned threads) {
            Barrier& barrier =
                (*static_cast<std::array<Barrier, simt::kNamedBarriers>*>(state)).at(number);
            barrier.name = "named sync";
            barrier.expected = threads;
            running->pass_barrier(barrier, false);
        };
        for (unsigned t = 0; t < shape.threads; ++t) {
            if (thread_count_ == kMostThreads) {
                throw std::runtime_error(fmt::format("more than {} threads", kMostThreads));
            }
            Thread& thread = threads_[thread_count_++];
            if (thread.stack == nullptr) {
                thread.stack = {new char[kStackBytes], [](char* stack) { delete[] stack; }};
            }
            thread.rank = rank;
            thread.block = static_cast<int>(b);
            thread.number = static_cast<int>(t);
            thread.state = State::kReady;
            thread.mind = {};
            thread.mind.now.step(number_of(thread));
            thread.call = nullptr;
            thread.handle = simt::ThreadBlock(&block, t);
            thread.body = [body, &thread] { body(thread.handle); };
            // As symm_explore_switch leaves a stack: six registers, and where it goes on.
            auto** top = reinterpret_cast<void**>(
                             reinterpret_cast<std::uintptr_t>(thread.stack.get() + kStackBytes) &
                             ~std::uintptr_t{15}) -
                         8;
            std::fill(top, top + 8, nullptr);
            top[6] = reinterpret_cast<void*>(&live);
            thread.sp = top;
        }
    }
}

bool Runtime::pass_barrier(Barrier& barrier, bool vote) {
    const Inside inside(*this);
    log(barrier.name.c_str(), -1, 0, barrier.passed, nullptr);
    barrier.vote |= vote;
    barrier.waiting.push_back(number_of(*current_));
    if (barrier.waiting.size() < barrier.expected) {
        current_->state = State::kAtBarrier;
        symm_explore_switch(&current_->sp, scheduler_sp_);
        return barrier.result;
    }
    const bool fences = barrier.ends_kernel && options_.kernel_end == KernelEnd::kFence;
    const bool releases = barrier.ends_kernel && options_.kernel_end != KernelEnd::kNothing;
    Knowledge all;
    Set past;
    for (const int i : barrier.waiting) {
        const Mind& mind = threads_[static_cast<std::size_t>(i)].mind;
        all.join(mind.now);
        if (fences) {
            all.join(mind.acquirable);
        }
        past.insert(mind.past);
    }
    for (const int i : barrier.waiting) {
        Thread& thread = threads_[static_cast<std::size_t>(i)];
        thread.mind.now = all;
        thread.mind.past = past;
        thread.mind.now.step(i);
        if (releases) {
            thread.mind.released = all;
        }
        thread.state = State::kReady;
    }
    barrier.waiting.clear();
    ++barrier.passed;
    barrier.result = barrier.vote;
    barrier.vote = false;
    return barrier.result;
}

// --- waits ---------------------------------------------------------------------------------------

Awaited Runtime::await(bool (*poll)(void*), void* context, const std::uint32_t* gave_up) {
    const Inside inside(*this);
    current_->wait = {};
    current_->wait.poll = poll;
    current_->wait.context = context;
    current_->wait.gave_up = options_.may_give_up ? gave_up : nullptr;
    current_->state = State::kWaits;
    symm_explore_switch(&current_->sp, scheduler_sp_);
    return current_->wait.how;
}

bool Runtime::call_poll(Thread& thread) {
    loads_ = 0;
    read_.clear();
    current_ = &thread;
    poll_frame_ = __builtin_frame_address(0);
    inside_ = false;
    const bool ended = thread.wait.poll(thread.wait.context);
    inside_ = true;
    current_ = nullptr;
    return ended;
}

void Runtime::undo() {
    for (auto change = overwritten_.rbegin(); change != overwritten_.rend(); ++change) {
        std::memcpy(change->first, change->second.data(), change->second.size());
    }
    overwritten_.clear();
}

// Calls the poll with all values that its loads may return, each time as if it had not been called
// before.
void Runtime::add_moves(Thread& thread) {
    Wait& wait = thread.wait;
    wait.moves.clear();
    wait.polled.clear();
    wait.tried = true;
    digits_.clear();
    counts_.clear();
    const Mind mind = thread.mind;
    const auto add = [&](Awaited how, bool misses) {
        wait.moves.push_back({number_of(thread), how, misses, read_});
    };
    std::optional<std::vector<std::uint64_t>> newest_fails;
    trying_ = true;
    for (bool newest = true; newest || !digits_.empty(); newest = false) {
        if (call_poll(thread)) {
            add(Awaited::kTrue, false);
        } else if (newest) {
            newest_fails = read_;
        }
        undo();
        thread.mind = mind;
        digits_.resize(loads_);
        counts_.resize(loads_);
        while (!digits_.empty() && ++digits_.back() == counts_.back()) {
            digits_.pop_back();
            counts_.pop_back();
        }
    }
    trying_ = false;
    if (!wait.moves.empty() && newest_fails) {
        read_ = *newest_fails;
        add(Awaited::kTrue, true);
    }
    if (wait.gave_up != nullptr) {
        read_.clear();
        add(Awaited::kTimeIsOver, false);
        const std::size_t flag = memory_.at(reinterpret_cast<std::uintptr_t>(wait.gave_up), 4);
        wait.polled.emplace_back(flag, 0);
        for (const StoreRecord* store : memory_.readable(flag, thread.mind)) {
            if (store->value != 0) {
                read_ = {store->id};
                add(Awaited::kAnother, false);
            }
        }
    }
    for (auto& [location, version] : wait.polled) {
        version = version_of(location);
    }
}

bool Runtime::is_stale(const Thread& thread) {
    return !thread.wait.tried || std::any_of(thread.wait.polled.begin(), thread.wait.polled.end(),
                                             [&](const auto& polled) {
                                                 return version_of(polled.first) != polled.second;
                                             });
}

void Runtime::make(Thread& thread, const Move& move) {
    Wait& wait = thread.wait;
    making_ = &move;
    const std::size_t number = search_.moved(number_of(thread), thread.mind.past);
    if (move.how == Awaited::kTrue) {
        if (call_poll(thread) == move.misses) {
            throw std::runtime_error("a poll ended otherwise than when it was tried");
        }
    } else if (move.how == Awaited::kAnother) {
        current_ = &thread;
        read_.clear();
        loads_ = 0;
        const std::size_t flag = memory_.at(reinterpret_cast<std::uintptr_t>(wait.gave_up), 4);
        Memory::read(flag, chosen(flag, false), kRelaxed, thread.mind);
        current_ = nullptr;
    }
    making_ = nullptr;
    thread.mind.past.insert(number);
    wait.tried = false;
    if (move.misses) {  // it polls again
        current_ = &thread;
        log("polls too late", -1, 0, 0, nullptr);
        current_ = nullptr;
        return;
    }
    wait.how = move.how;
    thread.state = State::kReady;
}

// The store that this load of a poll reads: the one whose turn it is, or the one that was chosen.
StoreRecord& Runtime::chosen(std::size_t location, bool for_update) {
    std::vector<StoreRecord*> stores = memory_.readable(location, current_->mind);
    if (for_update) {
        std::erase_if(stores, [](const StoreRecord* store) { return store->updated; });
    }
    StoreRecord* store = nullptr;
    if (trying_) {
        if (loads_ == digits_.size()) {
            digits_.push_back(0);
            counts_.push_back(stores.size());
        }
        store = stores.at(digits_[loads_]);
        auto& polled = current_->wait.polled;
        if (std::none_of(polled.begin(), polled.end(),
                         [&](const auto& one) { return one.first == location; })) {
            polled.emplace_back(location, 0);
        }
    } else {
        const auto found = std::find_if(stores.begin(), stores.end(), [&](const StoreRecord* one) {
            return one->id == making_->reads.at(loads_);
        });
        if (found == stores.end()) {
            throw std::runtime_error("the scene does not repeat itself");
        }
        store = *found;
    }
    ++loads_;
    read_.push_back(store->id);
    return *store;
}

// --- accesses ------------------------------------------------------------------------------------

long Runtime::log(const char* what, int order, std::uintptr_t address, std::uint64_t value,
                  void* place, long from, long newest) {
    log_.push_back(
        {number_of(*current_), what, order, address, value, from, newest, place, current_->call});
    return static_cast<long>(log_.size()) - 1;
}

void Runtime::access(std::uintptr_t address, std::size_t size, Kind kind, void* place) {
    const char* const what =
        kind.atomic ? (kind.store ? "store" : "load") : (kind.store ? "plain store" : "plain load");
    const long step =
        kind.atomic ? static_cast<long>(log_.size()) - 1 : log(what, -1, address, 0, place);
    for (std::uintptr_t at = address; at < address + size;) {
        const std::uintptr_t end = std::min(address + size, (at / 8 + 1) * 8);
        const auto race = races_.access(at - reinterpret_cast<std::uintptr_t>(scene_), end - at,
                                        kind, number_of(*current_), current_->mind, step);
        if (race) {
            const Thread& other = threads_[static_cast<std::size_t>(race->thread)];
            const Logged& earlier = log_[static_cast<std::size_t>(race->step)];
            involved_ = {static_cast<std::size_t>(race->step), static_cast<std::size_t>(step)};
            fail(fmt::format("data race on {}: {} by {} (step {}), {} by {} (step {})", name_of(at),
                             earlier.what, name_of(other), race->step, what, name_of(*current_),
                             step));
        }
        at = end;
    }
}

void Runtime::plain(void* address, std::size_t size, bool store, void* place) {
    const Inside inside(*this);
    if (trying_) {
        const auto* const here = static_cast<const char*>(__builtin_frame_address(0));
        if (store && !(here <= address && address < poll_frame_)) {
            auto* const bytes = static_cast<char*>(address);
            overwritten_.emplace_back(bytes, std::vector<char>(bytes, bytes + size));
        }
        return;
    }
    if (!holds(address)) {
        return;
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    access(begin, size, {store, false}, place);
    if (store) {
        memory_.forget(begin, size);
    }
}

std::uint64_t Runtime::load(std::uintptr_t address, unsigned size, int order, void* place) {
    const std::size_t location = [&] {
        const Inside inside(*this);
        return memory_.at(address, size);
    }();
    if (!trying_ && making_ == nullptr) {
        bool alone = true;
        {
            const Inside inside(*this);
            for (std::size_t i = 0; i < thread_count_ && alone; ++i) {
                alone = &threads_[i] == current_ || !memory_[location].writers.contains(i);
            }
        }
        if (!alone) {  // a wait that ends at once
            struct Load {
                std::uintptr_t address;
                unsigned size;
                int order;
                void* place;
                std::uint64_t value;
            } one{address, size, order, place, 0};
            await(
                [](void* context) {
                    Load& load = *static_cast<Load*>(context);
                    load.value = running->load(load.address, load.size, load.order, load.place);
                    return true;
                },
                &one, nullptr);
            return one.value;
        }
    }
    const Inside inside(*this);
    const bool polls = trying_ || making_ != nullptr;
    StoreRecord& store = polls ? chosen(location, false) : *memory_[location].stores.back();
    Memory::read(location, store, order, current_->mind);
    current_->last_reads = {&store, current_->last_reads[0]};
    if (!trying_) {
        const auto& stores = memory_[location].stores;
        log("load", order, address, store.value, place, store.step,
            stores.back() != &store ? stores.back()->step : -1);
        access(address, size, {false, true}, place);
        reads_[static_cast<std::size_t>(number_of(*current_))].push_back(store.id);
    }
    return store.value;
}

void Runtime::put(std::size_t location, std::uint64_t value, int order, const StoreRecord* behind,
                  void* place) {
    const int me = number_of(*current_);
    Location& word = memory_[location];
    if (!word.writers.contains(static_cast<std::size_t>(me))) {
        word.writers.insert(static_cast<std::size_t>(me));
        begin_again_ = true;
    }
    std::size_t before = 0;
    if (behind == nullptr) {
        const auto places = memory_.places(location, current_->mind);
        before = places[search_.choose(places.size())];
    }
    const long step = log("store", order, word.address, value, place);
    access(word.address, word.size, {true, true}, place);
    memory_.store(location, value, order, me, before, behind, current_->mind).step = step;
    search_.stored(location, me, current_->mind.past);
}

void Runtime::store(std::uintptr_t address, unsigned size, std::uint64_t value, int order,
                    void* place) {
    const Inside inside(*this);
    if (trying_ || making_ != nullptr) {
        throw std::runtime_error("a poll stores, which it may not");
    }
    put(memory_.at(address, size), value, order, nullptr, place);
}

std::uint64_t Runtime::update(std::uintptr_t address, unsigned size, int order, void* place,
                              const std::uint64_t* expected,
                              std::uint64_t (*change)(std::uint64_t, std::uint64_t),
                              std::uint64_t operand) {
    struct Update {
        std::uintptr_t address;
        unsigned size;
        int order;
        void* place;
        const std::uint64_t* expected;
        std::uint64_t (*change)(std::uint64_t, std::uint64_t);
        std::uint64_t operand;
        std::uint64_t old;
    } one{address, size, order, place, expected, change, operand, 0};
    const Set past = current_->mind.past;
    await(
        [](void* context) {
            Update& u = *static_cast<Update*>(context);
            Runtime& r = *running;
            const Inside inside(r);
            const std::size_t location = r.memory_.at(u.address, u.size);
            StoreRecord& read = r.chosen(location, true);
            u.old = read.value;
            if (r.trying_) {
                return true;
            }
            Memory::read(location, read, u.order, r.current_->mind);
            r.log("load", u.order, u.address, read.value, u.place, read.step);
            r.access(u.address, u.size, {false, true}, u.place);
            r.reads_[static_cast<std::size_t>(r.number_of(*r.current_))].push_back(read.id);
            return true;
        },
        &one, nullptr);
    const Inside inside(*this);
    const std::size_t location = memory_.at(address, size);
    search_.updated(location, past);
    if (expected == nullptr || one.old == *expected) {
        StoreRecord* read = nullptr;
        for (StoreRecord* store : memory_[location].stores) {
            if (store->id == reads_[static_cast<std::size_t>(number_of(*current_))].back()) {
                read = store;
            }
        }
        read->updated = true;
        put(location, change(one.old, operand), order, read, place);
    }
    return one.old;
}

// --- executions ----------------------------------------------------------------------------------

void Runtime::fail(const std::string& why) {
    inside_ = true;
    why_ = why;
    siglongjmp(failed_, 1);
}

void Runtime::run_ready() {
    for (bool again = true; again;) {
        again = false;
        for (std::size_t i = 0; i < thread_count_; ++i) {
            if (threads_[i].state == State::kReady) {
                again = true;
                resume(threads_[i]);
            }
        }
    }
}

std::string Runtime::deadlock() {
    std::string text = "nobody can go on:";
    for (std::size_t i = 0; i < thread_count_; ++i) {
        const Thread& thread = threads_[i];
        if (thread.state == State::kAtBarrier) {
            text += fmt::format(" {} waits at a barrier;", name_of(thread));
        } else if (thread.state == State::kWaits) {
            text += fmt::format(" {} polls", name_of(thread));
            for (const auto& [location, version] : thread.wait.polled) {
                text += ' ' + name_of(memory_[location].address);
                if (const long step = memory_[location].stores.back()->step; step >= 0) {
                    involved_.push_back(static_cast<std::size_t>(step));
                }
            }
            text += ';';
        }
    }
    text.pop_back();
    return text;
}

End Runtime::execute() {
    std::memset(scene_, 0, used_);
    used_ = 0;
    names_.clear();
    thread_count_ = 0;
    barriers_.clear();
    kernel_ends_.clear();
    blocks_.clear();
    warps_.clear();
    named_barriers_.clear();
    log_.clear();
    calls_.clear();
    reads_.assign(kMostThreads, {});
    overwritten_.clear();
    memory_.clear();
    races_.clear();
    search_.begin_execution();
    current_ = nullptr;
    making_ = nullptr;
    trying_ = false;
    inside_ = true;
    if (sigsetjmp(failed_, 1) != 0) {
        trying_ = false;
        making_ = nullptr;
        return End::kFailed;
    }
    Scene scene;
    setup_(scene);
    while (true) {
        run_ready();
        std::vector<Move> moves;
        std::map<int, std::vector<std::size_t>> polled;
        bool ended = true;
        for (std::size_t i = 0; i < thread_count_; ++i) {
            Thread& thread = threads_[i];
            ended = ended && thread.state == State::kEnded;
            if (thread.state != State::kWaits) {
                continue;
            }
            if (is_stale(thread)) {
                add_moves(thread);
            }
            moves.insert(moves.end(), thread.wait.moves.begin(), thread.wait.moves.end());
            for (const auto& [location, version] : thread.wait.polled) {
                polled[static_cast<int>(i)].push_back(location);
            }
        }
        if (ended) {
            return End::kComplete;
        }
        if (moves.empty()) {
            fail(deadlock());
        }
        const Move* const move = search_.next(moves, polled);
        if (move == nullptr) {
            return End::kAsleep;
        }
        make(threads_[static_cast<std::size_t>(move->thread)], *move);
    }
}

// Who read from whom, and the order of the stores: what makes two executions the same.
std::vector<std::uint64_t> Runtime::graph() {
    std::vector<std::uint64_t> graph;
    for (std::size_t i = 0; i < thread_count_; ++i) {
        graph.push_back(~std::uint64_t{0});
        graph.insert(graph.end(), reads_[i].begin(), reads_[i].end());
    }
    std::map<std::uintptr_t, std::vector<std::uint64_t>> orders;
    memory_.each([&](const Location& location) {
        for (const StoreRecord* store : location.stores) {
            orders[location.address].push_back(store->id);
        }
    });
    for (const auto& [address, order] : orders) {
        graph.push_back(~std::uint64_t{0} - 1);
        graph.insert(graph.end(), order.begin(), order.end());
    }
    return graph;
}

std::string Runtime::name_of(std::uintptr_t address) const {
    for (const Named& named : names_) {
        if (address >= named.begin && address < named.end) {
            return address == named.begin ? named.name
                                          : fmt::format("{}+{}", named.name, address - named.begin);
        }
    }
    return "?";
}

std::vector<Step> Runtime::steps() const {
    static constexpr std::array kOrders{"relaxed", "consume", "acquire",
                                        "release", "acq_rel", "seq_cst"};
    std::vector<Step> steps;
    std::vector<std::vector<void*>> calls;  // of each step that accesses something
    for (const Logged& logged : log_) {
        const Thread& thread = threads_[static_cast<std::size_t>(logged.thread)];
        Step& step = steps.emplace_back();
        step.rank = thread.rank;
        step.block = thread.block;
        step.thread = thread.number;
        step.what = logged.what;
        step.order = logged.order < 0 ? "" : kOrders.at(static_cast<std::size_t>(logged.order));
        step.value = logged.value;
        step.accesses = logged.address != 0;
        if (step.accesses) {
            step.location = name_of(logged.address);
            step.from = logged.from;
            step.newest = logged.newest;
            std::vector<void*> callers;
            for (const Call* call = logged.call; call != nullptr; call = call->caller) {
                callers.push_back(call->place);
            }
            callers.insert(callers.begin(), logged.place);
            calls.push_back(std::move(callers));
        }
    }
    const auto places = places_of(calls);
    std::size_t next = 0;
    for (Step& step : steps) {
        if (step.accesses) {
            step.places = places[next++];
        }
    }
    return steps;
}

void on_fault(int, siginfo_t* info, void*) {
    if (running == nullptr) {
        std::signal(SIGSEGV, SIG_DFL);
        std::raise(SIGSEGV);
        return;
    }
    running->crash(info->si_addr);
}

Report Runtime::explore() {
    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    Report report;
    double told = 0;
    while (true) {
        const End end = execute();
        report.threads = static_cast<int>(thread_count_);
        if (end == End::kFailed) {
            ++report.executions;
            report.failed = true;
            report.why = why_;
            report.steps = steps();
            report.involved = involved_;
            if (report.involved.empty() && !report.steps.empty()) {
                report.involved = {report.steps.size() - 1};
            }
            break;
        }
        if (begin_again_) {  // loads of what has a new writer were no choices so far
            begin_again_ = false;
            search_.restart();
            report.executions = report.cut_off = 0;
            report.graphs.clear();
            continue;
        }
        ++(end == End::kComplete ? report.executions : report.cut_off);
        if (options_.collect && end == End::kComplete) {
            report.graphs.insert(graph());
        }
        if (!search_.advance()) {
            report.exhausted = true;
            break;
        }
        if (report.executions + report.cut_off >= options_.most_executions) {
            report.why = fmt::format("the bound of {} executions", options_.most_executions);
            break;
        }
        if (seconds() > options_.seconds) {
            report.why = fmt::format("the bound of {} s", options_.seconds);
            break;
        }
        if (options_.progress && seconds() - told > 1) {
            told = seconds();
            options_.progress(report.executions + report.cut_off, told);
        }
    }
    report.seconds = seconds();
    return report;
}

}  // namespace

void Scene::launch(int rank, const Shape& shape,
                   const std::function<void(const simt::ThreadBlock&)>& body) {
    running->launch(rank, shape, body);
}
void* Scene::allocate_bytes(std::size_t bytes, const std::string& name, int rank) {
    return running->allocate(bytes, name, rank);
}
void kernel_end() {
    running->pass_kernel_end();
}
void fail(const std::string& why) {
    running->fail(why);
}
void acquire_both() {
    running->acquire_both();
}
Awaited await(bool (*poll)(void*), void* context, const std::uint32_t* gave_up) {
    return running->await(poll, context, gave_up);
}

Report explore(const Options& options, const std::function<void(Scene&)>& setup) {
    const auto runtime = std::make_unique<Runtime>(options, setup);
    static std::array<char, 64 * 1024> alternate;
    const stack_t stack{alternate.data(), 0, alternate.size()};
    ::sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    std::array<struct sigaction, 2> before{};
    ::sigaction(SIGSEGV, &action, &before[0]);
    ::sigaction(SIGBUS, &action, &before[1]);
    running = runtime.get();
    const auto end = [&] {
        running = nullptr;
        ::sigaction(SIGSEGV, &before[0], nullptr);
        ::sigaction(SIGBUS, &before[1], nullptr);
    };
    try {
        Report report = runtime->explore();
        end();
        return report;
    } catch (...) {
        end();
        throw;
    }
}

// --- for the instrumentation ---------------------------------------------------------------------

bool is_running() {
    return running != nullptr && running->is_running();
}
bool is_in_scene(const volatile void* address) {
    return running->holds(address);
}
void plain_access(void* address, std::size_t size, bool store, void* place) {
    if (is_running() && size != 0) {
        running->plain(address, size, store, place);
    }
}
std::uint64_t atomic_load(std::uintptr_t address, unsigned size, int order, void* place) {
    return running->load(address, size, order, place);
}
void atomic_store(std::uintptr_t address, unsigned size, std::uint64_t value, int order,
                  void* place) {
    running->store(address, size, value, order, place);
}
std::uint64_t atomic_update(std::uintptr_t address, unsigned size, int order, void* place,
                            const std::uint64_t* expected,
                            std::uint64_t (*change)(std::uint64_t old, std::uint64_t operand),
                            std::uint64_t operand) {
    return running->update(address, size, order, place, expected, change, operand);
}
void atomic_fence(int order) {
    if (is_running()) {
        const Runtime::Inside inside(*running);
        running->fence(order);
    }
}
void enter_function(void* place) {
    if (is_running()) {
        const Runtime::Inside inside(*running);
        running->enter(place);
    }
}
void leave_function() {
    if (is_running()) {
        const Runtime::Inside inside(*running);
        running->leave();
    }
}

}  // namespace symm::explore
