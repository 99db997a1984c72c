#include "labs/04_shm_transport/transport/transport.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "common/cuda/addresses.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/graph.hpp"
#include "common/ranks/peer_watch.hpp"
#include "common/simt/back_off.hpp"
#include "labs/04_shm_transport/connection/transfer_kernel.hpp"

namespace symm {

ShmTransport::~ShmTransport() {
    if (timeout_) {  // else moved from
        end_calls(*rank_, *timeout_);
    }
}

const ShmTransport::Link& ShmTransport::link(const Links& links, int peer) const {
    const auto found = links.by_peer.find(peer);
    if (found == links.by_peer.end()) {
        const std::string_view text =
            &links == &out_
                ? "rank {} cannot send to rank {}, which did not name it as a sender"
                : "rank {} cannot receive from rank {}, which it did not name as a sender";
        throw std::invalid_argument(fmt::format(fmt::runtime(text), rank_->rank(), peer));
    }
    return found->second;
}

CUdeviceptr ShmTransport::staging(int peer) const {
    const Connection& shared = link(out_, peer).shared;
    return reinterpret_cast<CUdeviceptr>(shared.buffer + shared.slots_bytes());
}

void ShmTransport::queue(const Transfer* to, const Transfer* from, CUstream stream) {
    if (!broken_.empty()) {
        throw std::runtime_error(broken_);
    }
    for (const Transfer* one : {to, from}) {
        if (one != nullptr && one->bytes != 0 &&
            (one->data == 0 || !is_addressable(one->data, one->bytes, 1))) {
            throw std::invalid_argument(
                fmt::format("there is no memory of {} bytes at {:#x}", one->bytes, one->data));
        }
    }
    TransferKernel kernel{};
    kernel.rank = rank_->rank();
    kernel.timeout = timeout_->timeout();
    if (to != nullptr) {
        kernel.outbound = {connection_to(to->peer), reinterpret_cast<const std::byte*>(to->data),
                           to->bytes, to->peer};
    }
    if (from != nullptr) {
        kernel.inbound = {connection_from(from->peer), reinterpret_cast<std::byte*>(from->data),
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
    const std::string failure = out_.proxy ? out_.proxy->failure() : "";
    return failure.empty() && in_.proxy ? in_.proxy->failure() : failure;
}

// A kernel's sends are done when their data is in its GPU's slots; the proxy may still have to copy
// it. Not so for receives: a peer's next message may already be waiting in the proxy's slots.
void ShmTransport::drain() const {
    const Deadline deadline =
        Deadline::after(std::chrono::nanoseconds(timeout_->timeout().limit_ns));
    for (const auto& [peer, link] : out_.by_peer) {
        for (std::uint32_t channel = 0; link.slots && channel < link.kernels.channels; ++channel) {
            const ConnectionEnd end = link.kernels.end(channel);
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
                        rank_->rank(), deadline.seconds(), peer));
                }
                simt::back_off(round);
            }
        }
    }
}

}  // namespace symm
