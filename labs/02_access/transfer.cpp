#include "labs/02_access/transfer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/event.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/pattern/pattern.hpp"
#include "labs/02_access/kernels.hpp"
#include "labs/02_access/shared_buffer.hpp"

namespace symm {
namespace {

constexpr unsigned char kPoison = 0xA5;

std::string describe(const PeerTransfer& transfer) {
    return fmt::format("{} bytes from device {} to device {} by {}", transfer.bytes,
                       transfer.source, transfer.destination, name_of(transfer.method));
}

/// A stream whose kernels are over before what they use goes away, on error paths, too.
class DrainedStream {
public:
    DrainedStream() = default;
    DrainedStream(DrainedStream&&) = default;
    DrainedStream& operator=(DrainedStream&&) = default;
    ~DrainedStream() {
        try {
            if (stream_.get() != nullptr) {
                stream_.synchronize("a transfer");
            }
        } catch (const std::exception&) {  // the first error is on its way already
        }
    }
    const Stream& operator*() const { return stream_; }

private:
    Stream stream_;
};

/// Holds back all streams that queued its kernel, until it is opened or goes.
class Gate {
public:
    Gate() : flag_(sizeof(std::uint32_t)) {}
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;
    ~Gate() { open(); }

    void queue(CUstream stream) const {
        queue_gate(stream, flag_.as<std::uint32_t>(), timeout_.timeout());
    }
    void open() const { simt::store(flag_.as<std::uint32_t>(), 1u, simt::Order::kRelaxed); }
    /// Waits for a stream behind the gate; says so where the gate was never seen to open.
    void wait(const Stream& stream, std::string_view what) { timeout_.synchronize(stream, what); }

private:
    PinnedMemory flag_;
    KernelTimeout timeout_;
};

}  // namespace

struct TransferBench::Buffers {
    std::vector<SharedBuffer> outgoing;
    std::vector<SharedBuffer> incoming;
};

/// What one device has to move.
struct TransferBench::Lane {
    const Gpu& gpu;  ///< Whose kernels or copy engine it is.
    std::vector<const PeerTransfer*> transfers;
    DrainedStream stream;
    Event start;
    Event end;
};

const char* name_of(Method method) {
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

Pair PeerTransfer::access() const {
    return method == Method::kLoads ? Pair{destination, source} : Pair{source, destination};
}

TransferBench::TransferBench(std::span<const Gpu> gpus, const PeerMatrix& matrix, std::size_t bytes)
    : gpus_(gpus), matrix_(&matrix), bytes_(bytes), buffers_(std::make_unique<Buffers>()) {
    const Drained before_buffers_go(gpus_);
    for (const Gpu& gpu : gpus_) {
        const std::vector<int> users = matrix.users_of(gpu.ordinal());
        buffers_->outgoing.emplace_back(gpu.ordinal(), bytes, users);
        buffers_->incoming.emplace_back(gpu.ordinal(), bytes, users);
        pattern::fill(gpu, {buffers_->outgoing.back().base(), bytes / sizeof(std::uint32_t),
                            static_cast<std::uint32_t>(gpu.ordinal())});
    }
}

TransferBench::TransferBench(TransferBench&&) noexcept = default;
TransferBench& TransferBench::operator=(TransferBench&&) noexcept = default;
TransferBench::~TransferBench() = default;

int TransferBench::devices() const {
    return static_cast<int>(gpus_.size());
}

std::vector<double> TransferBench::run(std::span<const PeerTransfer> transfers, int iterations) {
    std::for_each(transfers.begin(), transfers.end(),
                  [this](const PeerTransfer& transfer) { require_possible(transfer); });
    const Drained before_buffers_go(gpus_);
    poison(transfers);

    // The gate's flag before the lanes: a kernel that waits for it must not outlive it.
    gpus_.front().make_current();
    Gate gate;
    std::vector<Lane> lanes;
    std::vector<std::size_t> lane_of;  // by transfer
    for (const PeerTransfer& transfer : transfers) {
        const int actor = transfer.access().accessor;
        auto lane = std::find_if(lanes.begin(), lanes.end(),
                                 [&](const Lane& other) { return other.gpu.ordinal() == actor; });
        if (lane == lanes.end()) {
            const Gpu& gpu = gpus_[static_cast<std::size_t>(actor)];
            gpu.make_current();
            lanes.push_back({gpu, {}, {}, Event(), Event()});
            lane = std::prev(lanes.end());
        }
        lane->transfers.push_back(&transfer);
        lane_of.push_back(static_cast<std::size_t>(lane - lanes.begin()));
    }
    const auto opened_on_the_way_out = std::unique_ptr<const Gate, void (*)(const Gate*)>(
        &gate, [](const Gate* held) { held->open(); });

    for (const Lane& lane : lanes) {  // loads the kernels and the page tables' caches
        lane.gpu.make_current();
        queue(lane, 1);
        gate.wait(*lane.stream, describe(*lane.transfers.back()));
    }
    for (const Lane& lane : lanes) {
        lane.gpu.make_current();
        gate.queue((*lane.stream).get());
        lane.start.record((*lane.stream).get());
        queue(lane, iterations);
        lane.end.record((*lane.stream).get());
    }
    gate.open();

    std::vector<double> us;  // by lane
    for (const Lane& lane : lanes) {
        lane.gpu.make_current();
        gate.wait(*lane.stream, describe(*lane.transfers.back()));
        us.push_back(elapsed_us(lane.start, lane.end));
    }
    std::vector<double> rates;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
        const double moved = static_cast<double>(transfers[i].bytes) * iterations;
        rates.push_back(us[lane_of[i]] > 0 ? moved / us[lane_of[i]] * 1e-3 : 0);
    }
    std::for_each(transfers.begin(), transfers.end(),
                  [this](const PeerTransfer& transfer) { verify_arrival(transfer); });
    return rates;
}

void TransferBench::require_possible(const PeerTransfer& transfer) const {
    const bool fits = transfer.bytes != 0 && transfer.bytes % sizeof(std::uint32_t) == 0 &&
                      transfer.source_offset % 16 == 0 && transfer.destination_offset % 16 == 0 &&
                      transfer.source_offset + transfer.bytes <= bytes_ &&
                      transfer.destination_offset + transfer.bytes <= bytes_;
    if (!fits) {
        throw std::invalid_argument(fmt::format(
            "{} (offsets {} and {}) do not lie in buffers of {} bytes in whole words",
            describe(transfer), transfer.source_offset, transfer.destination_offset, bytes_));
    }
    if (!matrix_->usable(transfer.access())) {
        throw std::invalid_argument(
            fmt::format("{}: {} is not usable", describe(transfer), describe(transfer.access())));
    }
}

void TransferBench::poison(std::span<const PeerTransfer> transfers) const {
    for (const PeerTransfer& transfer : transfers) {
        const auto index = static_cast<std::size_t>(transfer.destination);
        const Gpu& gpu = gpus_[index];
        gpu.make_current();
        cu_check(cuMemsetD8Async(buffers_->incoming[index].base() + transfer.destination_offset,
                                 kPoison, transfer.bytes, gpu.stream()),
                 "cuMemsetD8Async(size={}, device={})", transfer.bytes, transfer.destination);
        gpu.wait(fmt::format("poison on device {}", transfer.destination));
    }
}

void TransferBench::queue(const Lane& lane, int iterations) const {
    const CUstream stream = (*lane.stream).get();
    for (const PeerTransfer* transfer : lane.transfers) {
        const CUdeviceptr from =
            buffers_->outgoing[static_cast<std::size_t>(transfer->source)].base() +
            transfer->source_offset;
        const CUdeviceptr to =
            buffers_->incoming[static_cast<std::size_t>(transfer->destination)].base() +
            transfer->destination_offset;
        for (int i = 0; i < iterations; ++i) {
            if (transfer->method == Method::kCopyEngine) {
                cu_check(cuMemcpyAsync(to, from, transfer->bytes, stream), "cuMemcpyAsync({})",
                         describe(*transfer));
            } else {
                queue_copy(stream, lane.gpu.shape(), to, from, transfer->bytes);
            }
        }
    }
}

void TransferBench::verify_arrival(const PeerTransfer& transfer) const {
    const auto index = static_cast<std::size_t>(transfer.destination);
    const std::size_t words = transfer.bytes / sizeof(std::uint32_t);
    const pattern::Result verdict = pattern::compare(
        gpus_[index], {buffers_->incoming[index].base() + transfer.destination_offset, words,
                       static_cast<std::uint32_t>(transfer.source),
                       transfer.source_offset / sizeof(std::uint32_t)});
    if (!verdict.right()) {
        throw std::runtime_error(
            fmt::format("{}: wrong data arrived, {}", describe(transfer), verdict.describe()));
    }
}

}  // namespace symm
