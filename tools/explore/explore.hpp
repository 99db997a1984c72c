#pragma once
/// \file
/// Runs kernels in every order of their threads, with every value that the memory model allows a
/// load to return (docs/EXPLORE.md). What runs is compiled by clang with -fsanitize=thread, which
/// puts a call before each access; the functions that it calls are those of this folder.
///
/// A *scene* is what is explored: memory, and ranks whose threads run kernels on it.
///
///     Report report = explore({}, [](Scene& scene) {
///         auto* flag = scene.allocate<std::uint32_t>(1, "flag");
///         for (int rank = 0; rank < 2; ++rank) {
///             scene.launch(rank, {.threads = 1}, [=](const simt::ThreadBlock&) { ... });
///         }
///     });

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/cuda/launch_order.hpp"
#include "common/simt/explored.hpp"
#include "common/simt/thread_block.hpp"

namespace symm::explore {

/// The threads of a rank, as of a launch.
struct Shape {
    dim3 blocks = 1;
    dim3 threads = 1;
    std::size_t shared_bytes = 0;  ///< Each block has this many.
};

/// How reports show the bits of memory: as numbers, or eight bytes as a packet's data and flag.
enum class Shown { kNumber, kFloat, kPacket };

template <class T>
constexpr Shown shown_as() {
    if constexpr (requires(T packet) { packet.flag0; }) {
        return Shown::kPacket;
    }
    return std::is_same_v<T, float> ? Shown::kFloat : Shown::kNumber;
}

/// The initial state of an execution. All threads see what the setup stores.
class Scene {
public:
    /// Memory that all ranks reach, aligned to 128 bytes. It is a failure if a thread loads what
    /// neither the setup nor a thread has stored. `name` is for reports; `rank` is the rank where
    /// it lies, or -1.
    template <class T>
    T* allocate(std::size_t count, const std::string& name, int rank = -1) {
        return allocate<T>(count, name, rank, false);
    }
    /// The same, and the setup has stored zeros: as memory after cuMemsetD8().
    template <class T>
    T* zeroed(std::size_t count, const std::string& name, int rank = -1) {
        return allocate<T>(count, name, rank, true);
    }
    /// Gives a part of what was allocated a name of its own, in reports: `slot(0 from 1)`.
    template <class T>
    void name(const T* part, std::size_t count, const std::string& name, int rank = -1) {
        name_bytes(part, count * sizeof(T), sizeof(T), shown_as<T>(), name, rank);
    }
    /// An address behind which memory of each rank lies, `count` objects from each of `copies` on.
    /// The multimem functions (common/simt/multimem.hpp) access all of it; any other access fails.
    template <class T>
    T* multicast(const std::vector<T*>& copies, std::size_t count, const std::string& name) {
        void* const address = multicast_bytes({copies.begin(), copies.end()}, count * sizeof(T));
        name_bytes(address, count * sizeof(T), sizeof(T), shown_as<T>(), name, -1);
        return static_cast<T*>(address);
    }
    /// Adds the threads of a rank. Each calls `body`, which may run several kernels one after
    /// another, with kernel_end() between them.
    virtual void launch(int rank, const Shape& shape,
                        const std::function<void(const simt::ThreadBlock&)>& body) = 0;
    /// Adds a kernel, `body`, to the stream of a rank, which has no other launches. Two kernels may
    /// overlap (streams.hpp). In reports its blocks have the numbers after those of the kernels
    /// before it.
    virtual void launch(int rank, const Shape& shape,
                        const std::function<void(const simt::ThreadBlock&)>& body,
                        LaunchOrder order) = 0;

protected:
    ~Scene() = default;

private:
    template <class T>
    T* allocate(std::size_t count, const std::string& name, int rank, bool zeroed) {
        void* const memory = allocate_bytes(count * sizeof(T), zeroed);
        name_bytes(memory, count * sizeof(T), sizeof(T), shown_as<T>(), name, rank);
        return static_cast<T*>(memory);
    }
    virtual void* allocate_bytes(std::size_t bytes, bool zeroed) = 0;
    virtual void* multicast_bytes(const std::vector<void*>& copies, std::size_t bytes) = 0;
    virtual void name_bytes(const void* memory, std::size_t bytes, std::size_t element, Shown shown,
                            const std::string& name, int rank) = 0;
};

/// The end of a kernel of the calling thread's rank: all of its threads call it. What the rank has
/// done and seen comes before what they do next (KernelEnd).
void kernel_end();
/// Those of the calling thread.
const simt::ThreadBlock& this_block();
dim3 block_dim();
/// The calling thread returns from its kernel before the others of its block: until the kernel's
/// end their syncs do not wait for it (as on GPUs since Volta).
void leave_block();
/// For what is no kernel, and has no Waiter.
using simt::await;
/// Called in a body: runs code of the scene that keeps its own books, and whose accesses are not
/// seen.
void unseen(const std::function<void()>& code);
/// Called in a body: the execution is wrong.
void fail(const std::string& why);
/// Called in a body: loads a result to check it, which may be of memory that nothing has written.
void load_result(const void* address, std::size_t bytes, void* to);
template <class T>
T result(const T* address) {
    T value;
    load_result(address, sizeof(T), &value);
    return value;
}

/// How much of the search is left out because something equivalent is done (search.hpp). The tests
/// compare them.
enum class Reduction { kNone, kSleepSets, kSourceSets };

/// What the end of a kernel does for other ranks. The next kernel of the rank's stream always knows
/// what the ended one has done and seen.
enum class KernelEnd {
    kFence,    ///< A fence: a relaxed store of the next kernel publishes what the ended one did.
    kNothing,  ///< Only what PTX promises.
};

/// How far a search has come.
struct Progress {
    std::uint64_t executions = 0;  ///< Visited.
    double seconds = 0;
    double part = 0;  ///< Of all executions, more than 0: an estimate.
};

struct Options {
    bool may_give_up = false;  ///< Each wait may also end because its time is over.
    std::uint64_t most_executions = 2'000'000;
    double seconds = 60;  ///< Of processor time, as all of an exploration's seconds.
    /// A search that has not ended by then makes random executions for a second, and goes on.
    double random_after = 2;
    /// One that has not ended after so many executions makes as many random ones, and stops. 0: it
    /// goes on.
    std::uint64_t sample = 0;
    /// After a failure, so many random executions look for a shorter one with the same failure.
    unsigned shorten = 0;
    Reduction reduction = Reduction::kSourceSets;
    bool collect = false;  ///< Report::graphs.
    KernelEnd kernel_end = KernelEnd::kFence;
    /// Report::steps of the first execution, if none fails. No random executions.
    bool record = false;
    std::function<void(const Progress&)> progress;  ///< Called once a second.
};

/// A part of memory of at most eight bytes that each step accesses whole, or not at all.
struct Cell {
    std::string name;   ///< `r1.scratch+8`, `r1.out[2]`.
    int rank = -1;      ///< Where it lies; -1: nowhere in particular.
    std::string first;  ///< Its value before the first step; `?` if nothing had written it.
};

/// One step of an execution. Values are texts: `40`, `1, 2`, `10 (flag 3)`.
struct ReportedStep {
    int rank = -1, block = 0, thread = 0;
    std::string what;           ///< `load`, `plain store`, `fence`, `block.sync`, `waits` ...
    std::string order;          ///< `acquire` ...; empty where it has none.
    bool by_multicast = false;  ///< An access of all ranks' memory, of which this is one.
    std::string location;       ///< `r1.scratch+8`, `r1.out[2]`; empty: it accesses nothing.
    int owner = -1;             ///< The rank where that lies; -1: nowhere in particular.
    std::string value;          ///< Empty for a plain store that was not made any more.
    std::uint64_t passed = 0;   ///< For a sync: how often its threads have passed it before.
    long from = -1;    ///< For a load: the step that stored the value; -1: it was there at first.
    long newest = -1;  ///< For an atomic load: the newest store there, if it is another one.
    /// For a plain store in another rank's memory: the step whose value it overwrites before
    /// another thread has read it; -1: none.
    long over = -1;
    /// For an atomic load: the steps whose stores it could read, newest first, and their values.
    std::vector<std::pair<long, std::string>> choices;
    /// For a load with which a wait ends: the values that end it, `at least 2`, `flag 3`, `not 7`.
    /// Found by calling the poll with other values, where Options::record is set.
    std::string until;
    std::vector<std::pair<std::size_t, std::string>> cells;  ///< Numbers and values of its cells.
    /// `labs/06_allreduce/algorithms/one_shot/one_shot.hpp:58`, innermost first.
    std::vector<std::string> places;
};

struct Report {
    bool failed = false;
    bool exhausted = false;  ///< Everything was visited; else a bound ended the search.
    std::string why;         ///< Names the failure, or the bound.
    std::uint64_t executions = 0;
    /// Accesses of other ranks' memory in the first execution, of 16 bytes at most.
    std::uint64_t over_links = 0;
    bool polls_over_links = false;  ///< A wait has polled another rank's memory, in any execution.
    double seconds = 0;
    int threads = 0;
    std::vector<ReportedStep> steps;              ///< Of the failing, or the recorded execution.
    std::vector<Cell> cells;                      ///< All memory that these access.
    std::vector<long> involved;                   ///< Those that the failure is about.
    std::set<std::vector<std::uint64_t>> graphs;  ///< Which store each load read; store orders.
};

/// Explores. `setup` is called at the start of each execution. Throws std::runtime_error where the
/// scene is too large or not deterministic.
Report explore(const Options& options, const std::function<void(Scene&)>& setup);
/// Explores with each Reduction, in their order. The reports have graphs.
std::array<Report, 3> explore_each_way(Options options, const std::function<void(Scene&)>& setup);

}  // namespace symm::explore
