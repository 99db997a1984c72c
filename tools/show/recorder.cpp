#include "tools/show/recorder.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "common/cuda/driver.hpp"
#include "common/emu/kernels/host_twin.hpp"
#include "common/emu/kernels/launch.hpp"
#include "tools/json_string.hpp"

namespace symm::show {
namespace {

using Words = std::vector<std::uint32_t>;

/// A store that is announced, and surely made when its thread makes the next one, or syncs.
struct Store {
    const char* what;
    CUdeviceptr address;
    std::size_t bytes;
};

/// A CUDA thread.
struct Thread {
    int rank;
    std::size_t number;
    std::optional<Store> announced = {};
    std::map<CUdeviceptr, Words> seen = {};
};

std::mutex mutex;  // guards all up to `threads`
std::vector<Place> places;
std::vector<std::string> entries;
std::map<std::array<CUdeviceptr, 3>, std::size_t> copies;  // to, from, bytes: their number
std::size_t blocks = 0;
std::size_t threads = 0;

std::atomic<bool> is_recording{false};
thread_local int this_rank = 0;
// The CUDA threads of this thread, by the beginning of their stacks, which grow downwards.
thread_local std::map<const void*, Thread*> fibers;
thread_local bool is_inside = false;  // the recorder itself may call instrumented functions

/// Keeps the other threads out. False while nothing is recorded.
class Inside {
public:
    Inside() : entered_(is_recording && !is_inside) {
        if (entered_) {
            is_inside = true;
            mutex.lock();
        }
    }
    ~Inside() {
        if (entered_) {
            mutex.unlock();
            is_inside = false;
        }
    }
    Inside(const Inside&) = delete;
    explicit operator bool() const { return entered_; }
    Thread* thread() const {
        const auto found = fibers.lower_bound(__builtin_frame_address(0));
        return !entered_ || found == fibers.end() ? nullptr : found->second;
    }

private:
    bool entered_;
};

CUdeviceptr address_of(const volatile void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

const Place* place_of(CUdeviceptr address) {
    const auto found =
        std::ranges::find_if(places, [&](const Place& p) { return address - p.address < p.bytes; });
    return found == places.end() ? nullptr : &*found;
}

Words words_at(CUdeviceptr address, std::size_t bytes) {
    const auto* const first = reinterpret_cast<const std::uint32_t*>(address);
    return {first, first + bytes / sizeof(*first)};
}

void add(const char* what, int rank, std::size_t number, std::size_t at, std::size_t offset,
         const Words& words = {}) {
    entries.push_back(fmt::format("[{}, {}, {}, {}, {}, {}]", json_string(what), rank, number, at,
                                  offset, words));
}

/// The words are those that are there now.
void add_access(const char* what, int rank, std::size_t number, CUdeviceptr address,
                std::size_t bytes) {
    if (const Place* const place = place_of(address)) {
        add(what, rank, number, static_cast<std::size_t>(place - places.data()),
            address - place->address, words_at(address, bytes));
    }
}

void settle(Thread& thread) {
    if (const auto store = std::exchange(thread.announced, {})) {
        add_access(store->what, thread.rank, thread.number, store->address, store->bytes);
    }
}

/// It may belong to the same assignment as the store that is announced, and come before that.
void load(Thread& thread, CUdeviceptr address, std::size_t bytes) {
    const Place* const place = place_of(address);
    if (place != nullptr) {
        const Words words = words_at(address, bytes);
        if (std::exchange(thread.seen[address], words) != words || place->rank != thread.rank) {
            add_access("load", thread.rank, thread.number, address, bytes);
        }
    }
}

void store(Thread& thread, CUdeviceptr address, std::size_t bytes, bool release) {
    if (place_of(address) != nullptr) {
        settle(thread);
        thread.announced = {release ? "release" : "store", address, bytes};
    }
}

void plain(const void* pointer, std::size_t bytes, bool is_store) {
    const Inside inside;
    if (Thread* const thread = inside.thread()) {
        is_store ? store(*thread, address_of(pointer), bytes, false)
                 : load(*thread, address_of(pointer), bytes);
    }
}

/// A thread's block, which records syncs.
struct Block final : simt::HostBlock {
    Block(simt::HostBlock& block, std::size_t number_of, Thread& of)
        : real(block), number(number_of), thread(of) {
        group_index = real.group_index;
        grid_dim = real.grid_dim;
        size = real.size;
        shared = real.shared;
        exchange = real.exchange;
    }
    void note(const char* what) {
        if (const Inside inside; inside) {
            settle(thread);
            add(what, thread.rank, thread.number, number, syncs);
        }
    }
    bool sync(bool vote) override {
        note("arrive");
        const bool any = real.sync(vote);
        note("leave");
        ++syncs;
        return any;
    }
    void sync_warp(unsigned warp) override { real.sync_warp(warp); }
    void sync_named(unsigned name, unsigned count) override { real.sync_named(name, count); }

    simt::HostBlock& real;
    std::size_t number;
    Thread& thread;
    std::size_t syncs = 0;
};

/// A thread of a kernel that was queued after `earlier` copies.
void run_thread(const emu::KernelThread& kernel, const simt::ThreadBlock& block, int rank,
                std::size_t first_block, std::size_t earlier) {
    Thread thread{.rank = rank};
    const auto note = [&](const char* what) {
        if (const Inside inside; inside) {
            settle(thread);
            thread.number = thread.number == 0 ? ++threads : thread.number;
            add(what, rank, thread.number, earlier, 0);
        }
    };
    note("begin");
    const auto fiber = fibers.emplace(__builtin_frame_address(0), &thread).first;
    Block recorded(block.host(), first_block + block.group_index(), thread);
    kernel(simt::ThreadBlock(&recorded, block.thread_rank()));
    fibers.erase(fiber);
    note("end");
}

const DriverTable* emulated = nullptr;

CUresult queue_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    if (const Inside inside; inside && place_of(to) != nullptr) {
        add_access("queue", this_rank, copies.size(), from, bytes);
        copies[{to, from, bytes}] = copies.size();  // before this one
    }
    return emulated->cuMemcpyAsync_(to, from, bytes, stream);
}

/// A copy has been made.
void copied(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    if (const Inside inside; inside && copies.contains({to, from, bytes})) {
        add_access("copy", -1, copies[{to, from, bytes}], to, bytes);
    }
}

}  // namespace

void set_rank(int rank) {
    this_rank = rank;
}

void start_recording(std::vector<Place> all) {
    places = std::move(all);
    emulated = &driver_table();
    static DriverTable table = *emulated;
    table.cuMemcpyAsync_ = &queue_copy;
    use_driver_table(&table);
    is_recording = true;
}

std::string end_recording() {
    is_recording = false;
    return fmt::format("[{}]", fmt::join(entries, ",\n"));
}

}  // namespace symm::show

using namespace symm::show;

namespace symm::emu {
/// The recorded kernels call it in place of launch_kernel (CMakeLists.txt).
CUresult recorded_launch_kernel(CUstream stream, KernelLaunch launch) {
    if (const Inside inside; inside) {
        launch.thread = [kernel = launch.thread, rank = this_rank, first = blocks,
                         earlier = copies.size()](const simt::ThreadBlock& block) {
            run_thread(kernel, block, rank, first, earlier);
        };
        blocks += launch.grid.x;
    }
    return launch_kernel(stream, std::move(launch));
}
}  // namespace symm::emu

// The functions that g++ calls with -fsanitize=thread, as far as the kernels need them.
// (tools/explore/instrumentation.cpp has the explorer's.)
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_atomic_thread_fence(int) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
}
void __tsan_read_range(void* p, std::size_t bytes) {
    plain(p, bytes, false);
}
void __tsan_write_range(void* p, std::size_t bytes) {
    plain(p, bytes, true);
}

#define SYMM_PLAIN(bytes)               \
    void __tsan_read##bytes(void* p) {  \
        plain(p, bytes, false);         \
    }                                   \
    void __tsan_write##bytes(void* p) { \
        plain(p, bytes, true);          \
    }
SYMM_PLAIN(1)
SYMM_PLAIN(2)
SYMM_PLAIN(4)
SYMM_PLAIN(8)
SYMM_PLAIN(16)

// Made while no other thread makes one, so that each load is of the store that came last.
#define SYMM_ATOMIC(bits, T)                                                     \
    T __tsan_atomic##bits##_load(const volatile T* p, int) {                     \
        const Inside inside;                                                     \
        if (Thread* const thread = inside.thread()) {                            \
            load(*thread, address_of(p), sizeof(T));                             \
        }                                                                        \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                             \
    }                                                                            \
    void __tsan_atomic##bits##_store(volatile T* p, T value, int order) {        \
        const Inside inside;                                                     \
        Thread* const thread = inside.thread();                                  \
        if (thread != nullptr) {                                                 \
            store(*thread, address_of(p), sizeof(T), order == __ATOMIC_RELEASE); \
        }                                                                        \
        __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                            \
        if (thread != nullptr) {                                                 \
            settle(*thread);                                                     \
        }                                                                        \
    }
SYMM_ATOMIC(8, std::uint8_t)
SYMM_ATOMIC(32, std::uint32_t)
SYMM_ATOMIC(64, std::uint64_t)
// What a rank's own threads count is not recorded.
std::uint32_t __tsan_atomic32_fetch_add(volatile std::uint32_t* p, std::uint32_t value, int) {
    return __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST);
}
bool __tsan_atomic32_compare_exchange_strong(volatile std::uint32_t* p, std::uint32_t* expected,
                                             std::uint32_t value, int, int) {
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

// The linker redirects all calls of these functions here (--wrap).
void* __real_memcpy(void* to, const void* from, std::size_t bytes);
void* __real_memmove(void* to, const void* from, std::size_t bytes);
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
    plain(from, bytes, false);
    plain(to, bytes, true);
    return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
    __real_memmove(to, from, bytes);
    copied(address_of(to), address_of(from), bytes);
    return to;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
