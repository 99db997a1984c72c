#pragma once
/// \file
/// The ranks of an AllReduce, their windows, and the call itself.

#include <cuda.h>

#include <array>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/cuda/event.hpp"
#include "common/cuda/graph.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch_order.hpp"
#include "common/cuda/stream.hpp"
#include "common/ranks/call_count.hpp"
#include "common/ranks/peer_watch.hpp"
#include "labs/06_allreduce/communicator/residency.hpp"
#include "labs/06_allreduce/communicator/window.hpp"
#include "labs/06_allreduce/tuning/tuner.hpp"

namespace symm {

// Declared only: users need not include these.
struct QueuedCall;
class Workspace;

/// How a communicator is built. The same on all ranks.
struct CommunicatorOptions {
    /// No wait in a kernel lasts longer than this. Empty: SYMM_TIMEOUT, if it is set; otherwise a
    /// kernel waits until the rank that it waits for calls, fails or is gone, or until abort().
    std::optional<std::chrono::nanoseconds> limit;
    /// The most blocks of a launch; 0: SYMM_MAX_BLOCKS, or as many as the device keeps resident.
    /// Several communicators on one device share its resident blocks (residency.hpp); each of them
    /// must pass a number here, since one that does not may take the whole device.
    unsigned max_blocks = 0;
};

/// One rank's communicator, like NCCL's ncclComm. Construction, windows and calls are collective:
/// all ranks, in the same order. Calls are asynchronous. Calls in several streams still run one
/// after another, since they share flags; a captured call runs each time its graph is launched
/// (epochs are counted in device memory: mailbox.hpp, barrier.hpp), and then the caller keeps the
/// order. While a stream is being captured, a call on another one throws std::invalid_argument if
/// it cannot wait its turn.
///
/// The Rank outlives it. Used by one thread at a time, which may be any thread, with any context
/// current or none: each function uses the rank's own context, and restores the caller's. A thread
/// of the communicator's own ends the calls in flight, within seconds, if a rank has failed or is
/// gone.
class Communicator {
public:
    /// SYMM_ALGO, SYMM_BLOCKS, SYMM_THREADS, SYMM_MAX_BLOCKS and SYMM_CHECK of rank 0 count on all
    /// ranks. Throws std::invalid_argument for more than kMaxRanksOnGpus ranks (kMaxAllReduceRanks
    /// if they are emulated), and if the device cannot keep its blocks resident beside those of the
    /// other communicators.
    explicit Communicator(Rank& rank, const CommunicatorOptions& options = {});
    Communicator(const Communicator&) = delete;
    /// Waits for the calls in flight. Ends them, and logs a warning, if a rank that they wait for
    /// has failed or is gone. If an exception destroys it, it ends them at once. Graphs with its
    /// calls can then no longer be launched.
    ~Communicator();

    /// Bytes of device memory that a communicator of `ranks` ranks takes on each rank, in addition
    /// to its windows. Throws std::invalid_argument for an impossible number of ranks.
    static std::size_t state_bytes(int ranks);
    /// The same with what it takes for large calls: with the first window that is large enough for
    /// them, or with the first call that asks for their algorithm.
    static std::size_t most_state_bytes(int ranks);

    int rank() const { return rank_.rank(); }
    int ranks() const { return rank_.size(); }
    const Device& gpu() const { return rank_.gpu(); }

    /// A window of new memory, `bytes` on every rank: ncclMemAlloc and ncclCommWindowRegister in
    /// one. Returns the address of this rank's memory. The window lives until release(), or as long
    /// as the communicator.
    CUdeviceptr allocate(std::size_t bytes);
    /// Makes a window of memory that each rank already has (for example from mem_alloc, or any part
    /// of it): ncclCommWindowRegister. Calls may use the memory's own address, or the returned one.
    /// The caller still owns the memory, and releases the window before the memory: otherwise a
    /// call that uses new memory at the same address would use the window's old memory instead.
    /// SYMM_CHECK=1 finds such calls.
    CUdeviceptr register_memory(CUdeviceptr pointer, std::size_t bytes);
    /// Destroys a window. Collective; waits for the work of all ranks, so that none still uses the
    /// window. Throws std::invalid_argument for an address that allocate() or register_memory() did
    /// not return.
    void release(CUdeviceptr window);
    /// The same without a wait, and on this rank alone; each rank does it between the same calls.
    /// The memory goes back once no earlier call uses it: during a later call that is not captured.
    /// Graphs, and the caller's own kernels, must have ended their use of it. Also while a stream
    /// is being captured.
    void retire(CUdeviceptr window);

    /// Queues the call: `out[i]` becomes the reduction of all ranks' `in[i]`, in the order of the
    /// ranks. half and bfloat16 are reduced as float and rounded once; sums and products of
    /// integers wrap. The bits of an element, a NaN's apart, depend on nothing else: they are the
    /// same on every rank, for any count, address, algorithm and number of blocks.
    ///
    /// `in` and `out` hold `count` elements each: the same buffer, or two that do not overlap, at
    /// multiples of the element's size (of 16 bytes for speed). Some algorithms need them in
    /// windows. For auto, they lie in windows on all ranks or on none. Returns the chosen plan.
    ///
    /// Throws CudaError, and std::invalid_argument for a call that is not possible; it has then
    /// changed nothing. After such a refusal this rank's next call first waits for the other ranks:
    /// they must have refused theirs too, or they are waiting for this one, and the call throws.
    /// With SYMM_CHECK=1 each call first waits for all ranks, and throws on each of them, before
    /// anything is queued, if one refuses it, or (std::invalid_argument) if their calls differ
    /// (count, type, operation, windows, order); without it calls that differ may wait until they
    /// time out, or end with wrong results. If the GPU refuses a call's work, all ranks fail.
    ///
    /// The first call that asks for an algorithm for large sizes, without a window large enough for
    /// it, waits for all ranks. Keep the stream at least until the next call, which may have to
    /// wait for it.
    CallPlan all_reduce(CUdeviceptr in, CUdeviceptr out, std::size_t count, DataType type,
                        ReduceOp op, CUstream stream, Algorithm asked = Algorithm::kAuto) {
        return call({{type, op, Collective::kAllReduce}, in, out, count}, stream, asked);
    }

    /// Queues a ReduceScatter: `in` has a part of `count` elements for each rank, in their order,
    /// and `out`, of `count` elements, becomes the reduction of all ranks' parts for this rank. In
    /// place, `out` is this rank's part of `in`. oneshot and copy take any memory; twoshot needs
    /// `in` in a window. Everything else is as in all_reduce(), including the bits of an element.
    CallPlan reduce_scatter(CUdeviceptr in, CUdeviceptr out, std::size_t count, DataType type,
                            ReduceOp op, CUstream stream, Algorithm asked = Algorithm::kAuto) {
        return call({{type, op, Collective::kReduceScatter}, in, out, count}, stream, asked);
    }
    /// Queues an AllGather: `out` gets each rank's `in`, of `count` elements, in the order of the
    /// ranks. In place, `in` is this rank's part of `out`. oneshot and copy take any memory;
    /// twoshot needs `out` in a window.
    CallPlan all_gather(CUdeviceptr in, CUdeviceptr out, std::size_t count, DataType type,
                        CUstream stream, Algorithm asked = Algorithm::kAuto) {
        return call({{type, ReduceOp::kSum, Collective::kAllGather}, in, out, count}, stream,
                    asked);
    }
    /// Queues a Broadcast: `out` gets the root's `in`, of `count` elements; other ranks' `in` is
    /// not looked at. twoshot needs `out` in windows on all ranks.
    CallPlan broadcast(CUdeviceptr in, CUdeviceptr out, std::size_t count, DataType type, int root,
                       CUstream stream, Algorithm asked = Algorithm::kAuto) {
        return call({{type, ReduceOp::kSum, Collective::kBroadcast, root}, in, out, count}, stream,
                    asked);
    }
    /// Queues a Reduce: the root's `out` becomes the reduction of all ranks' `in`; other ranks'
    /// `out` is not looked at. twoshot needs `in` in windows on all ranks.
    CallPlan reduce(CUdeviceptr in, CUdeviceptr out, std::size_t count, DataType type, ReduceOp op,
                    int root, CUstream stream, Algorithm asked = Algorithm::kAuto) {
        return call({{type, op, Collective::kReduce, root}, in, out, count}, stream, asked);
    }
    /// Any of these.
    CallPlan call(Call call, CUstream stream, Algorithm asked = Algorithm::kAuto);

    /// Whether call() may wait on the host until other ranks make it, too, or would refuse it, so
    /// that the next one waits. A thread that has several ranks then needs a thread for each.
    [[nodiscard]] bool may_wait(const Call& call, CUstream stream) const;
    /// Throws what call() would throw to refuse the call, and queues nothing. A call like any other
    /// for the ranks: all make it, and after a refusal the next one waits for them. `also` may
    /// throw what else speaks against it.
    void require_possible(const Call& call, CUstream stream,
                          const std::function<void()>& also = {});
    /// Passed to a kernel of the caller's that makes the communicator's later kernels give up.
    simt::Timeout timeout() const { return timeout_.timeout(); }

    // For kernels of the caller's own: OwnCollective uses these.

    /// `bytes` of memory on every rank until the communicator's end. `initialize` fills this
    /// rank's, before any rank can use it. Collective.
    const SymmetricRange& add_memory(std::size_t bytes,
                                     const std::function<void(CUdeviceptr)>& initialize);
    /// The place of these bytes in a window, by which each rank finds them; nothing if they lie in
    /// none.
    [[nodiscard]] std::optional<WindowPlace> find_window(CUdeviceptr pointer,
                                                         std::size_t bytes) const {
        return windows_.find(pointer, bytes);
    }
    /// How many blocks of a kernel a launch may have, if the current device keeps `resident()` of
    /// them resident: the same number on all ranks. Throws std::invalid_argument if that is none.
    /// Collective.
    unsigned agree_on_blocks(const std::function<unsigned()>& resident);
    /// Makes a call of the caller's own, in turn with all others. `call` names it and all that the
    /// ranks must pass alike, for SYMM_CHECK=1. `check` throws to refuse the call, as in call();
    /// `queue` launches its kernels.
    void queue_own(std::string_view call, CUstream stream, const std::function<void()>& check,
                   const std::function<void()>& queue);

    /// Whether each rank has a device of its own, which the copy engine's calls need.
    bool has_own_devices() const { return tuner_.most.own_devices; }
    /// Whether a kernel of so many blocks that waits for its predecessor may start before that has
    /// ended (mailbox.hpp). Both are then resident, so they have to fit this communicator's share.
    LaunchOrder launch_order(unsigned blocks) const;
    /// The launch that twoshot takes for `count` elements.
    LaunchShape two_shot_shape(DataType type, std::size_t count) const;

    /// Waits for the stream. Throws if a kernel gave up waiting, naming the rank it waited for. If
    /// a rank has failed or is gone, ends the kernels that wait for it, and throws. After that the
    /// communicator can only be destroyed. If `meanwhile` throws, that also ends the kernels.
    void synchronize(const Stream& stream, std::string_view what,
                     const std::function<void()>& meanwhile = {}) {
        const CurrentContext current(rank_.gpu());
        timeout_.synchronize(stream, what, [&] {
            rank_.bootstrap().throw_async_error(what);
            if (meanwhile) {
                meanwhile();
            }
        });
    }

    /// Waits for the calls in flight, as the destructor does; abort() ends that. Throws if a call
    /// has no result.
    void finish();
    /// The failures on any rank so far, or an empty text. Does not wait: NCCL's
    /// ncclCommGetAsyncError. After a failure the communicator can only be destroyed.
    std::string async_error();
    /// Throws that failure, if there is one: a BootstrapError if a rank is gone.
    void throw_async_error();
    /// Whether a kernel has given up waiting, so that its call has no result. Does not wait.
    bool has_given_up() const {
        const CurrentContext current(rank_.gpu());
        return timeout_.has_given_up();
    }
    /// Ends all calls in flight, and those still to come, as soon as a wait checks for it: NCCL's
    /// ncclCommAbort. From any thread.
    void abort() { timeout_.abort(); }

private:
    /// Whether the last call was in this stream.
    [[nodiscard]] bool is_last_stream(CUstream stream) const;
    /// Throws std::invalid_argument if ranks share the stream, or if it cannot wait for the last
    /// call.
    void require_turn(CUstream stream) const;
    /// Lets the stream wait for the last call, if that was in another one.
    void follow_last_call(CUstream stream);
    /// Gives back retired windows that no call uses any more, unless the stream, which follows the
    /// last call, is captured.
    void free_retired(CUstream stream);
    /// The call queued in the stream is now the last one.
    void remember_call(CUstream stream);

    struct Places;
    struct Checked;
    Places places_of(const Call& call) const;
    /// Throws what speaks against the call on this rank, and changes nothing.
    Checked check(const Call& call, CUstream stream, Algorithm asked) const;
    /// Counts a call, and compares it if SYMM_CHECK=1. Throws a refusal. `check` throws what speaks
    /// against the call, and returns the text that all ranks must have alike.
    void admit(const std::function<std::string()>& check);
    /// The same for a collective of the table.
    Checked admit(const Call& call, CUstream stream, Algorithm asked,
                  const std::function<void()>& also = {});
    /// Calls `queue` after the last call's work. If it throws, the ranks cannot go on.
    void queue_in_turn(CUstream stream, const std::function<void()>& queue);
    QueuedCall queued(const Call& call, const Checked& checked, CUstream stream) const;
    CUdeviceptr add_window(SymmetricRange range, CUdeviceptr registered);
    /// Makes what the algorithm needs for large calls, unless that is done. Collective.
    void prepare(const AlgorithmRow& row);

    Rank& rank_;
    /// While the communicator is made and destroyed, members included.
    std::optional<CurrentContext> current_;
    std::optional<RelaxedCapture> relaxed_;  ///< While it is made: the user may be capturing.
    std::unique_ptr<Workspace> workspace_;
    KernelTimeout timeout_;
    Tuner tuner_;
    std::optional<ResidencyShare> share_;
    Windows windows_;
    std::list<Window> retired_;  ///< Calls so far may use them.
    std::list<Window> leaving_;  ///< Calls before this event may:
    std::optional<Event> leaving_after_;
    Event last_call_;
    std::optional<CUstream> last_stream_;  ///< The last call was in it, not captured.
    std::thread::id last_thread_;          ///< It made that call.
    bool check_ = false;                   ///< SYMM_CHECK of rank 0.
    bool is_limited_ = false;              ///< To some blocks of the device.
    bool may_overlap_ = false;             ///< Kernels may be dependent launches.
    CallCount calls_;
    std::array<bool, kAlgorithms + kMostLoaded + 1> prepared_{};
    std::unique_ptr<PeerWatch> watch_;
};

}  // namespace symm
