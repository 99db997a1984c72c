// Runs the threads of a kernel: see launch.hpp. Their memory orders are those of the host's atomics
// (common/simt/atomic.hpp).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/emu/emulator.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/kernels/block_barrier.hpp"
#include "common/emu/kernels/fibers.hpp"
#include "common/emu/kernels/launch.hpp"
#include "common/emu/kernels/workers.hpp"
#include "common/emu/memory/access.hpp"
#include "common/emu/memory/fault_guard.hpp"
#include "common/emu/memory/lossy.hpp"
#include "common/emu/memory/multicast.hpp"
#include "common/emu/streams/graphs.hpp"
#include "common/simt/back_off.hpp"
#include "common/sys/deadline.hpp"

namespace symm::emu {
namespace {

class Running;

// CUDA threads of all devices that are resident. ThreadSanitizer can follow 8,128 threads and
// fibers; blocks, streams and the program itself need some of them.
constexpr int kMaxThreads = 6000;
std::atomic<int> resident{0};

// How far a launch is. Its dependent looks at it, also after its end. Polled, and relaxed but for
// `ended`: for ThreadSanitizer a start orders nothing, as on a GPU.
struct Progress {
    Progress(unsigned of_blocks, unsigned of_threads) : blocks(of_blocks), threads(of_threads) {}
    static void wait(const std::atomic<unsigned>& count, unsigned all, std::memory_order order) {
        for (int round = 0; count.load(order) < all; ++round) {
            simt::back_off(round);
        }
    }

    const unsigned blocks;
    const unsigned threads;
    std::atomic<unsigned> triggered{0};  ///< Blocks that have let dependents start, or ended.
    std::atomic<unsigned> ended{0};      ///< Threads.
};

// A block, whose threads are fibers of one thread of the operating system.
struct Block final : simt::HostBlock {
    Block(Running& in, const KernelLaunch& launch, unsigned index)
        : running(in), whole(launch.block.x), memory(launch.shared_bytes, 0xff) {
        group_index = dim3(index, 0, 0);
        grid_dim = launch.grid;
        size = launch.block.x;
        shared = memory.data();
        values.resize(size);
        exchange = values.data();
        for (unsigned first = 0; first < size; first += simt::kWarpSize) {
            warps.emplace_back(std::min(size - first, simt::kWarpSize));
        }
    }
    bool sync(bool vote) override { return whole.arrive_and_wait(vote); }
    void sync_warp(unsigned warp) override { warps[warp].arrive_and_wait(); }
    // A barrier is for the number of threads that its first user passes.
    void sync_named(unsigned number, unsigned threads) override {
        BlockBarrier& barrier = named.at(number);
        if (const unsigned expected = barrier.expect(threads); expected != threads) {
            throw std::logic_error(
                fmt::format("named barrier {} is for {} threads, but a thread waits there for {}",
                            number, expected, threads));
        }
        barrier.arrive_and_wait();
    }
    void wait_for_predecessor() override;
    void launch_dependents() override;
    simt::MulticastCopies copies_of(const void* address, simt::SwitchAccess access) override;
    void abandon() {
        whole.abandon();
        for (BlockBarrier& barrier : warps) {
            barrier.abandon();
        }
        for (BlockBarrier& barrier : named) {
            barrier.abandon();
        }
    }

    // Has a thread run the block. Returns pthread_create's error.
    int start();
    void run();
    void run_thread(unsigned rank);

    Running& running;
    BlockBarrier whole;
    std::deque<BlockBarrier> warps;
    std::array<BlockBarrier, simt::kNamedBarriers> named;
    std::atomic<bool> has_triggered{false};
    std::vector<std::uint64_t> values;  ///< For `exchange`.
    /// Not zeroed on a GPU. Here it begins as 0xff: a sum that needs zeros comes out wrong.
    std::vector<unsigned char> memory;
};

// A running launch, from the start of its first thread to the end of its last.
class Running final : public Started {
public:
    /// `before`: the launch that this one is dependent on, or null.
    Running(Context& context, std::shared_ptr<const KernelLaunch> launch,
            std::shared_ptr<Progress> before)
        : context_(context),
          launch_(std::move(launch)),
          before_(std::move(before)),
          progress_(
              std::make_shared<Progress>(launch_->grid.x, launch_->grid.x * launch_->block.x)),
          scope_(device().kernels),
          view_(context.device) {
        for (unsigned block = 0; block < launch_->grid.x; ++block) {
            blocks_.emplace_back(*this, *launch_, block);
        }
        left_ = blocks_.size();
        for (Block& block : blocks_) {
            if (const int error = block.start(); error != 0) {
                fail_to_start("pthread_create", error);
                block.launch_dependents();
                block_ended(block.size);
            }
        }
    }
    ~Running() override { finish(); }

    void wait_until_triggered() override {
        Progress::wait(progress_->triggered, progress_->blocks, std::memory_order_relaxed);
    }
    void finish() override;

    const std::shared_ptr<Progress>& progress() const { return progress_; }
    void wait_for_predecessor() const {
        if (before_ != nullptr) {
            Progress::wait(before_->ended, before_->threads, std::memory_order_acquire);
        }
    }
    void triggered() { progress_->triggered.fetch_add(1, std::memory_order_relaxed); }

    void fail(CUresult result, std::string_view why) {
        lose(context_, result, Text("kernel {}: {}", launch_->name, why));
        abandoned_.store(true, std::memory_order_relaxed);
        for (Block& block : blocks_) {
            block.abandon();
        }
    }
    void fail_to_start(std::string_view call, int error) {
        if (!abandoned_.load(std::memory_order_relaxed)) {
            fail(shortage(call, error), "not all of its threads could start");
        }
    }

    // Orders all that a CUDA thread has done before the stream's next work.
    void thread_ended() { progress_->ended.fetch_add(1, std::memory_order_release); }

    // `unstarted` of its threads never ran.
    void block_ended(unsigned unstarted) {
        progress_->ended.fetch_add(unstarted, std::memory_order_release);
        const std::lock_guard lock(mutex_);
        --left_;
        ended_.notify_all();
    }

    const KernelLaunch& launch() const { return *launch_; }
    int ordinal() const { return context_.device; }

private:
    Device& device() const { return emulator().devices[context_.device]; }

    Context& context_;
    const std::shared_ptr<const KernelLaunch> launch_;
    const std::shared_ptr<Progress> before_;
    const std::shared_ptr<Progress> progress_;
    WorkScope scope_;
    LossyView view_;
    std::deque<Block> blocks_;
    std::atomic<bool> abandoned_{false};
    std::mutex mutex_;
    std::condition_variable ended_;
    std::size_t left_ = 0;  // blocks
    bool is_finished_ = false;
};

void Block::wait_for_predecessor() {
    running.wait_for_predecessor();
}

void Block::launch_dependents() {
    if (!has_triggered.exchange(true, std::memory_order_relaxed)) {
        running.triggered();
    }
}

simt::MulticastCopies Block::copies_of(const void* address, simt::SwitchAccess access) {
    simt::MulticastCopies copies = emu::copies_of(running.ordinal(), address, access);
    if (copies.count == 0) {
        (void)*static_cast<const volatile char*>(address);  // faults, as any other access would
        return copies;
    }
    std::rotate(copies.at, copies.at + simt::detail::next_random() % copies.count,
                copies.at + copies.count);
    return copies;
}

int Block::start() {
    happens_before(this);
    return run_on_worker([](void* block) { static_cast<Block*>(block)->run(); }, this);
}

void Block::run() {
    happens_after(this);
    const auto body = [](void* block, unsigned rank) {
        static_cast<Block*>(block)->run_thread(rank);
    };
    if (!run_in_turns(size, body, this)) {
        running.fail_to_start("mmap", ENOMEM);
        launch_dependents();
        running.block_ended(size);
        return;
    }
    launch_dependents();
    running.block_ended(0);  // the last use of the block
}

void Block::run_thread(unsigned rank) {
    const auto fault = run_guarded([this, rank] {
        try {
            running.launch().thread(simt::ThreadBlock(this, rank));
        } catch (const LaunchAbandoned&) {
        } catch (const std::bad_alloc&) {
            running.fail(shortage("a kernel's thread", ENOMEM), "it ran out of memory");
        } catch (const std::exception& error) {
            running.fail(CUDA_ERROR_LAUNCH_FAILED, error.what());
        }
    });
    if (fault) {
        running.fail(CUDA_ERROR_ILLEGAL_ADDRESS,
                     Text("thread {} of block {} touched {:#x}, which its device may not access",
                          rank, group_index.x, *fault));
    }
    whole.leave();
    warps[rank / simt::kWarpSize].leave();
    running.thread_ended();
}

void give_back(Device& device, int threads) {
    device.threads.fetch_sub(threads, std::memory_order_relaxed);
    resident.fetch_sub(threads, std::memory_order_relaxed);
}

// Reserves the threads on the device and in the process, both or neither.
bool reserve(Device& device, int threads) {
    const int of_device = device.threads.fetch_add(threads, std::memory_order_relaxed);
    const int of_process = resident.fetch_add(threads, std::memory_order_relaxed);
    if (of_device + threads <= threads_of_device() && of_process + threads <= kMaxThreads) {
        return true;
    }
    give_back(device, threads);
    return false;
}

void Running::finish() {
    if (std::exchange(is_finished_, true)) {
        return;
    }
    {
        std::unique_lock lock(mutex_);
        ended_.wait(lock, [&] { return left_ == 0; });
    }
    (void)progress_->ended.load(std::memory_order_acquire);
    give_back(device(), static_cast<int>(progress_->threads));
}

// Runs in the stream's thread: waits for room, as blocks do on a GPU.
std::unique_ptr<Started> start_kernel(Context& context, std::shared_ptr<const KernelLaunch> launch,
                                      Started* before) {
    Device& device = emulator().devices[context.device];
    const int threads = static_cast<int>(launch->grid.x * launch->block.x);
    if (before != nullptr &&
        (!emulator().configuration.lossy.empty() || !reserve(device, threads))) {
        before->finish();
        before = nullptr;
    } else if (before != nullptr) {
        return std::make_unique<Running>(context, std::move(launch),
                                         static_cast<Running*>(before)->progress());
    }
    const Deadline deadline = Deadline::standard();
    // Polls: for ThreadSanitizer a wake-up would order the kernel that made room before this one.
    for (int round = 0; !reserve(device, threads); ++round) {
        if (deadline.passed()) {
            lose(context, CUDA_ERROR_LAUNCH_TIMEOUT,
                 Text("kernel {} waited {:.3g} s for room for {} threads: kernels of other streams "
                      "hold {} of the device's {}, and all devices of a process have {} (use fewer "
                      "ranks, blocks or threads)",
                      launch->name, deadline.seconds(), threads, device.threads.load(),
                      threads_of_device(), kMaxThreads));
            return nullptr;
        }
        simt::back_off(round);
    }
    return std::make_unique<Running>(context, std::move(launch), nullptr);
}

void check_shape(const KernelLaunch& launch) {
    const auto is_line = [](const dim3& size) { return size.x > 0 && size.y == 1 && size.z == 1; };
    refuse_if(!launch.thread || !is_line(launch.grid) || !is_line(launch.block) ||
              launch.block.x > kMaxBlock || launch.shared_bytes > kMaxSharedBytes);
    const std::uint64_t threads = std::uint64_t{launch.grid.x} * launch.block.x;
    if (threads > static_cast<std::uint64_t>(threads_of_device())) {
        say("kernel {}: {} blocks of {} threads are more than the {} threads of an emulated GPU; "
            "all blocks have to be resident at once (SYMM_EMU_SMS={} multiprocessors of {}, but at "
            "most {} threads)",
            launch.name, launch.grid.x, launch.block.x, threads_of_device(),
            emulator().configuration.multiprocessors, kThreadsOfMultiprocessor, kMaxThreads);
        refuse(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    }
}

}  // namespace

int threads_of_device() {
    return std::min(emulator().configuration.multiprocessors * kThreadsOfMultiprocessor,
                    kMaxThreads);
}

std::atomic<void (*)(CUstream, const KernelLaunch&, CUresult)> launch_observer{nullptr};

void queue_kernel(CUstream handle, KernelLaunch launch) {
    const auto stream = find_stream(handle);
    Context& context = current_context();
    refuse_if(&context != &stream->context(), CUDA_ERROR_INVALID_HANDLE);
    check_shape(launch);
    const auto kept = std::make_shared<const KernelLaunch>(std::move(launch));
    const auto start = [&context, kept](Started* before) {
        return start_kernel(context, kept, before);
    };
    const CUresult result = answer(
        [&] { submit(*stream, Operation{.start = start, .is_dependent = kept->is_dependent}); });
    if (const auto observer = launch_observer.load(std::memory_order_relaxed)) {
        observer(handle, *kept, result);
    }
    refuse_if(result != CUDA_SUCCESS, result);
}

CUresult launch_kernel(CUstream stream, KernelLaunch launch) {
    return answer([&] {
        refuse_if_forked();
        enter(index_of_function("cuLaunchKernel"));
        queue_kernel(stream, std::move(launch));
    });
}

void cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) {
    refuse(CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace symm::emu
