#include "labs/02_access/bandwidth.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/event.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/sys/table.hpp"
#include "common/test_pattern/test_pattern.hpp"
#include "labs/02_access/kernels.hpp"
#include "labs/02_access/latency.hpp"

namespace symm {
namespace {

constexpr unsigned char kPoison = 0xA5;
constexpr const char* kMethodNames[] = {"loads", "stores", "copy engine", "pulling copy engine"};

/// The pair whose access a transfer needs.
Pair access_for(Method method, const Route& transfer) {
    return method == Method::kLoads || method == Method::kPull
               ? Pair{transfer.destination, transfer.source}
               : Pair{transfer.source, transfer.destination};
}

/// Holds back streams until it is opened. The destructor opens it and waits for all streams, and
/// only then frees the flag that the gate's kernel reads.
class Gate {
public:
    /// The gate's kernel runs on the stream of `first`, whose context has to be current.
    Gate(const Gpu& first, std::span<const Gpu> all)
        : first_(first), flag_(sizeof(std::uint32_t)), drained_(all) {}
    ~Gate() { open(); }

    void close() const {
        queue_gate(first_.stream(), flag_.as<std::uint32_t>(), timeout_.timeout());
        opened_.record(first_.stream());
    }
    void hold_back(CUstream stream) const {
        cu_check(cuStreamWaitEvent(stream, opened_.get(), CU_EVENT_WAIT_DEFAULT),
                 "cuStreamWaitEvent()");
    }
    void open() const { simt::store(flag_.as<std::uint32_t>(), 1u, simt::Order::kRelaxed); }
    /// Waits for the first stream. Throws if the gate gave up before it was opened.
    void wait() { timeout_.synchronize(first_.owned_stream(), "the gate and the work after it"); }

private:
    const Gpu& first_;
    PinnedMemory flag_;
    KernelTimeout timeout_;
    Event opened_;
    Drained drained_;
};

}  // namespace

struct TransferBench::Running {
    Method method;
    Route transfer;
    const Gpu& gpu;  ///< Runs the kernel or copy.
    const Gpu& destination;
    CUdeviceptr from;
    CUdeviceptr to;
    Event start{};
    Event end{};

    std::string describe() const {
        return fmt::format("the transfer from device {} to device {} by {}", transfer.source,
                           transfer.destination, kMethodNames[static_cast<int>(method)]);
    }
    void queue(std::size_t bytes, int iterations) const {
        gpu.make_current();
        for (int i = 0; i < iterations; ++i) {
            if (method == Method::kCopyEngine || method == Method::kPull) {
                cu_check(cuMemcpyAsync(to, from, bytes, gpu.stream()), "cuMemcpyAsync(size={}), {}",
                         bytes, describe());
            } else {
                queue_copy(gpu.stream(), gpu.shape(), to, from, bytes);
            }
        }
    }
};

TransferBench::TransferBench(std::span<const Gpu> gpus, const PeerMatrix& matrix, std::size_t bytes)
    : gpus_(gpus), matrix_(&matrix), bytes_(bytes) {
    const Drained before_the_buffers_go(gpus_);
    for (const Gpu& gpu : gpus_) {
        const std::vector<int> users = matrix.users_of(gpu.ordinal());
        outgoing_.emplace_back(gpu.ordinal(), bytes, users);
        incoming_.emplace_back(gpu.ordinal(), bytes, users);
        test_pattern::fill(gpu, {outgoing_.back().base(), bytes / sizeof(std::uint32_t),
                                 static_cast<std::uint32_t>(gpu.ordinal())});
    }
}

std::optional<double> TransferBench::run(Method method, std::span<const Route> transfers,
                                         int iterations) {
    const auto at = [](const auto& all, int device) -> const auto& {
        return all[static_cast<std::size_t>(device)];
    };
    std::vector<Running> all;
    for (const Route& transfer : transfers) {
        const Pair access = access_for(method, transfer);
        if (access.accessor != access.owner && matrix_->usable(access)) {
            const Gpu& gpu = at(gpus_, access.accessor);
            gpu.make_current();
            all.push_back({method, transfer, gpu, at(gpus_, transfer.destination),
                           at(outgoing_, transfer.source).base(),
                           at(incoming_, transfer.destination).base()});
        }
    }
    if (all.empty()) {
        return std::nullopt;
    }
    for (const Running& one : all) {  // loads the kernels, warms up the page tables
        one.queue(bytes_, 1);
        one.gpu.wait(one.describe());
    }
    for (const Running& one : all) {
        one.destination.make_current();
        fill(one.to, kPoison, bytes_);
    }

    all.front().gpu.make_current();
    Gate gate(all.front().gpu, gpus_);
    gate.close();
    for (const Running& one : all) {
        gate.hold_back(one.gpu.stream());
        one.start.record(one.gpu.stream());
        one.queue(bytes_, iterations);
        one.end.record(one.gpu.stream());
    }
    gate.open();
    gate.wait();

    double slowest_us = 0;
    for (const Running& one : all) {
        one.gpu.wait(one.describe());
        one.gpu.make_current();
        slowest_us = std::max(slowest_us, elapsed_us(one.start, one.end));
    }
    for (const Running& one : all) {
        const test_pattern::Result result = test_pattern::compare(
            one.destination, {one.to, bytes_ / sizeof(std::uint32_t),
                              static_cast<std::uint32_t>(one.transfer.source)});
        if (!result.right()) {
            throw std::runtime_error(
                fmt::format("{} delivered wrong data: {}", one.describe(), result.describe()));
        }
    }
    return static_cast<double>(bytes_) * iterations / slowest_us * 1e-3;
}

std::string measure_links(std::span<const Gpu> gpus, const PeerMatrix& matrix, std::size_t bytes,
                          int iterations) {
    // 2 MiB of 128-byte lines: more than an L1 cache holds, and one page of GPU memory.
    constexpr std::size_t kLines = (std::size_t{2} << 20) / 128;
    const std::uint32_t hops = is_emulated() ? 256 : 16384;
    TransferBench bench(gpus, matrix, bytes);
    const auto line = [&](const std::string& from, const std::string& to,
                          const std::vector<Route>& transfers) {
        std::vector<std::string> cells{from, to};
        for (const Method method : kMethods) {
            const std::optional<double> rate = bench.run(method, transfers, iterations);
            cells.push_back(rate ? fmt::format("{:.1f}", *rate) : "-");
        }
        return cells;
    };

    TableRows table{
        {"from", "to", "loads GB/s", "stores GB/s", "copy engine GB/s", "pull GB/s", "latency ns"}};
    const int devices = static_cast<int>(gpus.size());
    for (int from = 0; from < devices; ++from) {
        for (int to = 0; to < devices; ++to) {
            std::vector<std::string> cells =
                line(std::to_string(from), std::to_string(to), {{from, to}});
            cells.push_back(
                matrix.usable({to, from})
                    ? fmt::format("{:.0f}", load_latency_ns(gpus[static_cast<std::size_t>(to)],
                                                            gpus[static_cast<std::size_t>(from)],
                                                            kLines, hops))
                    : "-");
            table.push_back(cells);
        }
    }
    for (int step = 1; step < devices; ++step) {
        std::vector<Route> transfers;
        for (int source = 0; source < devices; ++source) {
            transfers.push_back({source, (source + step) % devices});
        }
        table.push_back(line("each", fmt::format("i + {}", step), transfers));
    }
    return table_text(table);
}

}  // namespace symm
