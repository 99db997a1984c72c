#include "labs/04_shm_transport/transport.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/rank.hpp"
#include "common/ranks/registry.hpp"
#include "common/simt/atomic.hpp"
#include "labs/04_shm_transport/fifo_launch.hpp"

namespace symm {
namespace {

constexpr std::uint32_t kMostChannels = 64;
constexpr std::uint64_t kMostSlotBytes = std::uint64_t{1} << 30;
constexpr unsigned kMostThreads = 1024;
static_assert(kMaxRanks <= 64, "a set of ranks is the bits of one word");

bool contains(std::uint64_t set, int rank) {
    return (set >> rank & 1) != 0;
}

// The index of a rank's connection in the receiver's segment: the number of senders below it.
std::size_t place_among(std::uint64_t senders, int rank) {
    const std::uint64_t lower = (std::uint64_t{1} << rank) - 1;
    return static_cast<std::size_t>(std::popcount(senders & lower));
}

std::uint64_t checked_senders(const Rank& rank, std::span<const int> senders) {
    std::uint64_t set = 0;
    for (const int sender : senders) {
        if (sender < 0 || sender >= rank.size()) {
            throw std::invalid_argument(
                fmt::format("rank {} cannot receive from rank {}: there are ranks 0 to {}",
                            rank.rank(), sender, rank.size() - 1));
        }
        set |= std::uint64_t{1} << sender;
    }
    return set;
}

TransportOptions completed(TransportOptions options) {
    // On an emulated GPU each thread is a thread of the host: more of them gain nothing.
    if (options.channels == 0) {
        options.channels = is_emulated() ? 2 : 8;
    }
    if (options.threads == 0) {
        options.threads = is_emulated() ? 32 : 512;
    }
    if (options.channels > kMostChannels || options.threads > kMostThreads ||
        options.slot_bytes == 0 || options.slot_bytes % alignof(FifoControl) != 0 ||
        options.slot_bytes > kMostSlotBytes || options.limit.count() <= 0) {
        throw std::invalid_argument(fmt::format(
            "no transport of {} channels, {} threads, slots of {} bytes: at most {} channels and "
            "{} threads, and slots of a multiple of {} up to {}",
            options.channels, options.threads, options.slot_bytes, kMostChannels, kMostThreads,
            alignof(FifoControl), kMostSlotBytes));
    }
    return options;
}

}  // namespace

// What the other ranks have to know of a rank that receives.
struct ShmTransport::Plan {
    std::uint64_t senders;
    std::uint64_t slot_bytes;
    std::uint32_t channels;
    int device;

    std::size_t connection_bytes() const {
        return FifoConnection::bytes_needed(channels, slot_bytes);
    }
    std::size_t bytes() const {
        return static_cast<std::size_t>(std::popcount(senders)) * connection_bytes();
    }
    FifoConnection connection(CUdeviceptr segment, int sender) const {
        return {reinterpret_cast<std::byte*>(segment +
                                             place_among(senders, sender) * connection_bytes()),
                slot_bytes, channels};
    }
};

// This rank's connections with another.
struct ShmTransport::Peer {
    std::shared_ptr<HostSegment> segment;    ///< The peer's segment, where this rank sends to it.
    std::optional<FifoConnection> outbound;  ///< In the peer's segment.
    std::optional<FifoConnection> inbound;   ///< In this rank's segment.
};

ShmTransport::ShmTransport(Rank& rank, std::span<const int> senders,
                           const TransportOptions& options, Deadline deadline)
    : rank_(&rank) {
    Plan local{};
    rank.bootstrap().together(
        "04: options",
        [&] {
            const TransportOptions all = completed(options);
            threads_ = all.threads;
            local = {checked_senders(rank, senders), all.slot_bytes, all.channels, rank.device()};
            timeout_.emplace(all.limit);
        },
        deadline);
    path_ = agree_on_host_path(rank, options.path, deadline);
    build(rank, rank.bootstrap().allgather("04: plans", local, deadline), deadline);
}

ShmTransport::ShmTransport(ShmTransport&&) noexcept = default;
ShmTransport& ShmTransport::operator=(ShmTransport&&) noexcept = default;

ShmTransport::~ShmTransport() {
    if (!segment_) {
        return;  // moved from
    }
    rank_->tell_if_unwinding();
    if (std::uncaught_exceptions() > 0) {
        timeout_->abort();
        cu_check_nothrow(cuCtxSynchronize(), "cuCtxSynchronize()");
    }
}

void ShmTransport::build(Rank& rank, const std::vector<Plan>& plans, Deadline deadline) {
    Bootstrap& bootstrap = rank.bootstrap();
    const Plan& local = plans[static_cast<std::size_t>(rank.rank())];

    // Ranks that are threads share one mapping of each segment, open to the devices of all.
    std::vector<int> devices{rank.device()};
    if (rank.is_thread()) {
        for (const Plan& plan : plans) {
            if (std::find(devices.begin(), devices.end(), plan.device) == devices.end()) {
                devices.push_back(plan.device);
            }
        }
    }

    std::vector<UniqueFd> local_fd;  // empty where this rank receives from nobody
    bootstrap.together(
        "04: make segments",
        [&] {
            segment_ = std::make_shared<HostSegment>();
            if (local.senders != 0) {
                *segment_ = HostSegment::create(path_.path, local.bytes(), devices);
                if (!rank.is_thread()) {
                    local_fd.push_back(segment_->share());
                }
            }
        },
        deadline);

    struct Segment {
        std::size_t bytes;
        std::uint64_t number;  // in the registry
    };
    const Registry::Entry entry(segment_);
    const auto segments =
        bootstrap.allgather("04: segments", Segment{segment_->size(), entry.number()}, deadline);
    auto fds = bootstrap.exchange("04: file descriptors", local_fd, deadline);

    bootstrap.together(
        "04: attach segments",
        [&] {
            peers_.resize(plans.size());
            for (std::size_t r = 0; r < plans.size(); ++r) {
                const int peer = static_cast<int>(r);
                if (contains(local.senders, peer)) {
                    peers_[r].inbound = local.connection(segment_->address(), peer);
                }
                if (!contains(plans[r].senders, rank.rank())) {
                    continue;
                }
                if (rank.is_thread() || peer == rank.rank()) {
                    // One mapping for all ranks of a process: with several, ThreadSanitizer would
                    // not see that two addresses are the same memory.
                    peers_[r].segment =
                        std::static_pointer_cast<HostSegment>(Registry::find(segments[r].number));
                    if (!peers_[r].segment) {
                        throw std::runtime_error(
                            fmt::format("rank {} has given up its segment", peer));
                    }
                } else {
                    peers_[r].segment = std::make_shared<HostSegment>(HostSegment::attach(
                        path_.path, std::move(fds[r].at(0)), segments[r].bytes, devices));
                }
                peers_[r].outbound = plans[r].connection(peers_[r].segment->address(), rank.rank());
            }
        },
        deadline);
    // All have attached: a rank that ends now does not take its segment from the others.
}

const HostSegment& ShmTransport::segment() const {
    return *segment_;
}

const FifoConnection& ShmTransport::outbound_to(int peer) const {
    if (peer < 0 || static_cast<std::size_t>(peer) >= peers_.size() ||
        !peers_[static_cast<std::size_t>(peer)].outbound) {
        throw std::invalid_argument(
            fmt::format("rank {} cannot send to rank {}, which did not name it as a sender",
                        rank_->rank(), peer));
    }
    return *peers_[static_cast<std::size_t>(peer)].outbound;
}

const FifoConnection& ShmTransport::inbound_from(int peer) const {
    if (peer < 0 || static_cast<std::size_t>(peer) >= peers_.size() ||
        !peers_[static_cast<std::size_t>(peer)].inbound) {
        throw std::invalid_argument(
            fmt::format("rank {} cannot receive from rank {}, which it did not name as a sender",
                        rank_->rank(), peer));
    }
    return *peers_[static_cast<std::size_t>(peer)].inbound;
}

CUdeviceptr ShmTransport::outbound_address(int peer) const {
    return reinterpret_cast<CUdeviceptr>(outbound_to(peer).memory);
}

std::uint32_t ShmTransport::blocks(int peer, std::size_t bytes) const {
    return FifoMessage<const std::byte>{outbound_to(peer), nullptr, bytes, peer}.blocks();
}

void ShmTransport::queue(const Transfer* to, const Transfer* from, CUstream stream) {
    if (!broken_.empty()) {
        throw std::runtime_error(broken_);
    }
    TransferKernel kernel{};
    kernel.rank = rank_->rank();
    kernel.timeout = timeout_->timeout();
    if (to != nullptr) {
        kernel.outbound = {outbound_to(to->peer), reinterpret_cast<const std::byte*>(to->data),
                           to->bytes, to->peer};
    }
    if (from != nullptr) {
        kernel.inbound = {inbound_from(from->peer), reinterpret_cast<std::byte*>(from->data),
                          from->bytes, from->peer};
    }
    launch_transfer(stream, threads_, kernel);
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
    try {
        constexpr std::string_view kWhat = "a transfer through host memory";
        timeout_->synchronize(stream, kWhat, [&] { rank_->bootstrap().throw_async_error(kWhat); });
    } catch (const std::exception& error) {
        broken_ = error.what();
        throw;
    }
}

}  // namespace symm
