#include "labs/04_shm_transport/transport/transport.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "common/cuda/device.hpp"
#include "common/cuda/graph.hpp"
#include "common/ranks/peer_watch.hpp"
#include "common/simt/back_off.hpp"
#include "labs/04_shm_transport/connection/transfer_kernel.hpp"

namespace symm {

ShmTransport::~ShmTransport() {
    if (segment_) {  // else moved from
        end_calls(*rank_, *timeout_);
    }
}

const ShmTransport::Outbound& ShmTransport::outbound_to(int peer) const {
    const auto found = outbound_.find(peer);
    if (found == outbound_.end()) {
        throw std::invalid_argument(
            fmt::format("rank {} cannot send to rank {}, which did not name it as a sender",
                        rank_->rank(), peer));
    }
    return found->second;
}

const Connection& ShmTransport::inbound_from(int peer) const {
    const auto found = inbound_.find(peer);
    if (found == inbound_.end()) {
        throw std::invalid_argument(
            fmt::format("rank {} cannot receive from rank {}, which it did not name as a sender",
                        rank_->rank(), peer));
    }
    return found->second;
}

CUdeviceptr ShmTransport::staging(int peer) const {
    return outbound_to(peer).staging;
}

void ShmTransport::queue(const Transfer* to, const Transfer* from, CUstream stream) {
    if (!broken_.empty()) {
        throw std::runtime_error(broken_);
    }
    TransferKernel kernel{};
    kernel.rank = rank_->rank();
    kernel.timeout = timeout_->timeout();
    if (to != nullptr) {
        kernel.outbound = {outbound_to(to->peer).connection,
                           reinterpret_cast<const std::byte*>(to->data), to->bytes, to->peer};
    }
    if (from != nullptr) {
        kernel.inbound = {inbound_from(from->peer), reinterpret_cast<std::byte*>(from->data),
                          from->bytes, from->peer};
    }
    const CurrentContext current(rank_->gpu());
    launch_transfer(stream, kernel);
}

void ShmTransport::send(const Transfer& to, CUstream stream) {
    queue(&to, nullptr, stream);
}

void ShmTransport::receive(const Transfer& from, CUstream stream) {
    queue(nullptr, &from, stream);
}

void ShmTransport::send_receive(const Transfer& to, const Transfer& from, CUstream stream) {
    queue(&to, &from, stream);
}

void ShmTransport::finish(const Stream& stream) {
    if (!broken_.empty()) {
        throw std::runtime_error(broken_);
    }
    const CurrentContext current(rank_->gpu());
    // Waiting would break the capture, and the transport would take the error for a transfer's.
    if (is_captured(stream.get())) {
        throw std::invalid_argument(
            "finish() waits for a stream, and this one is being captured: end the capture, launch "
            "the graph, and call finish() then");
    }
    try {
        constexpr std::string_view kWhat = "a transfer through host memory";
        timeout_->synchronize(stream, kWhat, [&] { rank_->bootstrap().throw_async_error(kWhat); });
        drain();
    } catch (const std::exception& error) {
        broken_ = proxy_failure();  // a proxy that failed has aborted the kernel
        if (broken_.empty()) {
            broken_ = error.what();
            throw;
        }
        throw std::runtime_error(broken_);
    }
}

std::string ShmTransport::proxy_failure() const {
    const std::string failure = send_proxy_ ? send_proxy_->failure() : "";
    return failure.empty() && receive_proxy_ ? receive_proxy_->failure() : failure;
}

// A kernel's sends are done when their data is in its GPU's slots; the proxy may still have to copy
// it. Not so for receives: a peer's next message may already be waiting in the proxy's slots.
void ShmTransport::drain() const {
    const Deadline deadline =
        Deadline::after(std::chrono::nanoseconds(timeout_->timeout().limit_ns));
    for (const LocalHop& hop : hops_) {
        for (std::uint32_t channel = 0; hop.sends && channel < hop.connection.channels; ++channel) {
            const ConnectionEnd end = hop.connection.end(channel);
            // Relaxed: the kernel that stored it has ended.
            const std::uint64_t tail = simt::load(&end.receive->tail, simt::Order::kRelaxed);
            const auto handed_over = [&] {
                const std::uint64_t head = simt::load(&end.send->head, simt::Order::kRelaxed);
                return static_cast<std::int64_t>(head - tail) >= 0;
            };
            for (int round = 0; !handed_over(); ++round) {
                if (const std::string failure = proxy_failure(); !failure.empty()) {
                    throw std::runtime_error(failure);
                }
                rank_->bootstrap().throw_async_error("a transfer through host memory");
                if (deadline.passed()) {
                    throw std::runtime_error(fmt::format(
                        "rank {}'s proxy waited {:.3g} s for a free FIFO slot from rank {}",
                        rank_->rank(), deadline.seconds(), hop.peer));
                }
                simt::back_off(round);
            }
        }
    }
}

}  // namespace symm
