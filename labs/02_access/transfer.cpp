#include "labs/02_access/transfer.hpp"

#include <fmt/core.h>

#include <map>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/event.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/pattern/pattern.hpp"
#include "labs/02_access/kernels.hpp"

namespace symm {
namespace {

constexpr unsigned char kPoison = 0xA5;

std::string describe(Method method, const Transfer& transfer) {
    return fmt::format("the transfer from device {} to device {} by {}", transfer.source,
                       transfer.destination, name_of(method));
}

/// Holds back the streams that have queued its kernel until it is opened. However a scope is left,
/// it is opened and all streams have ended before the flag goes, which their kernels read.
class Gate {
public:
    explicit Gate(std::span<const Gpu> gpus) : flag_(sizeof(std::uint32_t)), drained_(gpus) {}
    ~Gate() { open(); }

    /// Needs the context of `gpu` to be current: a kernel's abort flag is in its own device's memory.
    void queue(const Gpu& gpu) {
        const KernelTimeout& timeout = timeouts_.try_emplace(gpu.ordinal()).first->second;
        queue_gate(gpu.stream(), flag_.as<std::uint32_t>(), timeout.timeout());
    }
    void open() const { simt::store(flag_.as<std::uint32_t>(), 1u, simt::Order::kRelaxed); }
    /// Waits for a stream behind the gate; throws where the gate gave up before it was opened.
    void wait(const Gpu& gpu, std::string_view what) {
        timeouts_.at(gpu.ordinal()).synchronize(gpu.owned_stream(), what);
    }

private:
    PinnedMemory flag_;
    std::map<int, KernelTimeout> timeouts_;  // by device
    Drained drained_;
};

}  // namespace

std::string_view name_of(Method method) {
    switch (method) {
        case Method::kLoads:
            return "loads";
        case Method::kStores:
            return "stores";
        case Method::kCopyEngine:
            break;
    }
    return "copy engine";
}

Pair access_for(Method method, const Transfer& transfer) {
    return method == Method::kLoads ? Pair{transfer.destination, transfer.source}
                                    : Pair{transfer.source, transfer.destination};
}

TransferBench::TransferBench(std::span<const Gpu> gpus, const PeerMatrix& matrix, std::size_t bytes)
    : gpus_(gpus), matrix_(&matrix), bytes_(bytes) {
    const Drained before_the_buffers_go(gpus_);
    for (const Gpu& gpu : gpus_) {
        const std::vector<int> users = matrix.users_of(gpu.ordinal());
        outgoing_.emplace_back(gpu.ordinal(), bytes, users);
        incoming_.emplace_back(gpu.ordinal(), bytes, users);
        pattern::fill(gpu, {outgoing_.back().base(), bytes / sizeof(std::uint32_t),
                            static_cast<std::uint32_t>(gpu.ordinal())});
    }
}

bool TransferBench::possible(Method method, const Transfer& transfer) const {
    return transfer.source != transfer.destination && matrix_->usable(access_for(method, transfer));
}

std::vector<double> TransferBench::run(Method method, std::span<const Transfer> transfers,
                                       int iterations) {
    for (const Transfer& transfer : transfers) {
        if (!possible(method, transfer)) {
            throw std::invalid_argument(fmt::format("{} is not possible: {} is not usable",
                                                    describe(method, transfer),
                                                    describe(access_for(method, transfer))));
        }
    }
    gpus_.front().make_current();
    Gate gate(gpus_);
    for (const Transfer& transfer : transfers) {
        const Gpu& destination = gpu(transfer.destination);
        const auto index = static_cast<std::size_t>(transfer.destination);
        destination.make_current();
        cu_check(cuMemsetD8Async(incoming_[index].base(), kPoison, bytes_, destination.stream()),
                 "cuMemsetD8Async(size={}, device={})", bytes_, transfer.destination);
        destination.wait(fmt::format("the poison on device {}", transfer.destination));
    }
    for (const Transfer& transfer : transfers) {  // loads the kernels, warms up the page tables
        queue(method, transfer, 1);
        actor(method, transfer).wait(describe(method, transfer));
    }

    std::vector<Event> starts;
    std::vector<Event> ends;
    for (const Transfer& transfer : transfers) {
        const Gpu& gpu = actor(method, transfer);
        gpu.make_current();
        starts.emplace_back();
        ends.emplace_back();
        gate.queue(gpu);
        starts.back().record(gpu.stream());
        queue(method, transfer, iterations);
        ends.back().record(gpu.stream());
    }
    gate.open();

    std::vector<double> rates;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
        const Gpu& gpu = actor(method, transfers[i]);
        gpu.make_current();
        gate.wait(gpu, describe(method, transfers[i]));
        const double us = elapsed_us(starts[i], ends[i]);
        rates.push_back(us > 0 ? static_cast<double>(bytes_) * iterations / us * 1e-3 : 0);
    }
    for (const Transfer& transfer : transfers) {
        const pattern::Result result = pattern::compare(
            gpu(transfer.destination),
            {incoming_[static_cast<std::size_t>(transfer.destination)].base(),
             bytes_ / sizeof(std::uint32_t), static_cast<std::uint32_t>(transfer.source)});
        if (!result.right()) {
            throw std::runtime_error(fmt::format("{} delivered wrong data: {}",
                                                 describe(method, transfer), result.describe()));
        }
    }
    return rates;
}

void TransferBench::queue(Method method, const Transfer& transfer, int iterations) const {
    const Gpu& gpu = actor(method, transfer);
    const CUdeviceptr from = outgoing_[static_cast<std::size_t>(transfer.source)].base();
    const CUdeviceptr to = incoming_[static_cast<std::size_t>(transfer.destination)].base();
    gpu.make_current();
    for (int i = 0; i < iterations; ++i) {
        if (method == Method::kCopyEngine) {
            cu_check(cuMemcpyAsync(to, from, bytes_, gpu.stream()), "cuMemcpyAsync(size={}), {}",
                     bytes_, describe(method, transfer));
        } else {
            queue_copy(gpu.stream(), gpu.shape(), to, from, bytes_);
        }
    }
}

}  // namespace symm
