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
#include "labs/04_shm_transport/fifo_kernels.hpp"

namespace symm {
namespace {

constexpr std::uint32_t kMostChannels = 64;
constexpr std::uint64_t kMostSlotBytes = std::uint64_t{1} << 30;
static_assert(kMaxRanks <= 64, "a set of ranks is the bits of one word");

bool contains(std::uint64_t set, int rank) {
    return (set >> rank & 1) != 0;
}

std::uint64_t set_of(const Rank& rank, std::span<const int> senders) {
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
    // On an emulated GPU each thread is a host thread: more channels gain nothing.
    if (options.channels == 0) {
        options.channels = is_emulated() ? 2 : 8;
    }
    if (options.channels > kMostChannels || options.slot_bytes == 0 ||
        options.slot_bytes % alignof(FifoControl) != 0 || options.slot_bytes > kMostSlotBytes ||
        options.limit.count() <= 0) {
        throw std::invalid_argument(
            fmt::format("no transport of {} channels with slots of {} bytes: at most {} channels, "
                        "and the bytes "
                        "of a slot a multiple of {} up to {}",
                        options.channels, options.slot_bytes, kMostChannels, alignof(FifoControl),
                        kMostSlotBytes));
    }
    return options;
}

}  // namespace

// What the other ranks have to know about a rank that receives.
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
    // The connections follow one another in the order of the senders.
    FifoConnection connection(const HostSegment& segment, int sender) const {
        const std::uint64_t lower = senders & ((std::uint64_t{1} << sender) - 1);
        const auto place = static_cast<std::size_t>(std::popcount(lower));
        return {reinterpret_cast<std::byte*>(segment.address() + place * connection_bytes()),
                slot_bytes, channels};
    }
};

ShmTransport::ShmTransport(Rank& rank, std::span<const int> senders,
                           const TransportOptions& options)
    : rank_(&rank) {
    Plan local{};
    rank.bootstrap().together("04: options", [&] {
        const TransportOptions all = completed(options);
        local = {set_of(rank, senders), all.slot_bytes, all.channels, rank.device()};
        timeout_.emplace(all.limit);
    });
    path_ = agree_on_host_path(rank, options.path);
    build(rank.bootstrap().allgather("04: plans", local));
}

ShmTransport::~ShmTransport() {
    if (!segment_) {
        return;  // moved from
    }
    rank_->tell_if_unwinding();
    if (std::uncaught_exceptions() > 0) {
        timeout_->abort();
        cuCtxSynchronize();  // its result is ignored: the exception that is thrown says more
    }
}

void ShmTransport::build(const std::vector<Plan>& plans) {
    Bootstrap& bootstrap = rank_->bootstrap();
    const int me = rank_->rank();
    const Plan& local = plans[static_cast<std::size_t>(me)];

    // Ranks that are threads share one mapping of each segment, open to the devices of all. With
    // several mappings ThreadSanitizer would not see that two addresses are the same memory.
    std::vector<int> devices{rank_->device()};
    for (const Plan& plan : plans) {
        if (rank_->is_thread() &&
            std::find(devices.begin(), devices.end(), plan.device) == devices.end()) {
            devices.push_back(plan.device);
        }
    }

    std::vector<UniqueFd> local_fd;  // empty where this rank receives from nobody
    bootstrap.together("04: make segments", [&] {
        segment_ = std::make_shared<HostSegment>();
        if (local.senders != 0) {
            *segment_ = HostSegment::create(path_.path, local.bytes(), devices);
            if (!rank_->is_thread()) {
                local_fd.push_back(segment_->share());
            }
        }
    });

    struct Segment {
        std::size_t bytes;
        std::uint64_t number;  // in the registry
    };
    const Registry::Entry entry(segment_);
    const auto segments =
        bootstrap.allgather("04: segments", Segment{segment_->size(), entry.number()});
    auto fds = bootstrap.exchange("04: file descriptors", local_fd);

    bootstrap.together("04: attach segments", [&] {
        for (int peer = 0; peer < rank_->size(); ++peer) {
            const auto index = static_cast<std::size_t>(peer);
            if (contains(local.senders, peer)) {
                inbound_[peer] = local.connection(*segment_, peer);
            }
            if (!contains(plans[index].senders, me)) {
                continue;
            }
            std::shared_ptr<HostSegment> segment;
            if (rank_->is_thread() || peer == me) {
                segment =
                    std::static_pointer_cast<HostSegment>(Registry::find(segments[index].number));
                if (!segment) {
                    throw std::runtime_error(fmt::format("rank {} has given up its segment", peer));
                }
            } else {
                segment = std::make_shared<HostSegment>(HostSegment::attach(
                    path_.path, std::move(fds[index].at(0)), segments[index].bytes, devices));
            }
            outbound_[peer] = {segment, plans[index].connection(*segment, me)};
        }
    });
    // All have attached: a rank that ends now does not take its segment from the others.
}

const FifoConnection& ShmTransport::outbound_to(int peer) const {
    const auto found = outbound_.find(peer);
    if (found == outbound_.end()) {
        throw std::invalid_argument(
            fmt::format("rank {} cannot send to rank {}, which did not name it as a sender",
                        rank_->rank(), peer));
    }
    return found->second.connection;
}

const FifoConnection& ShmTransport::inbound_from(int peer) const {
    const auto found = inbound_.find(peer);
    if (found == inbound_.end()) {
        throw std::invalid_argument(
            fmt::format("rank {} cannot receive from rank {}, which it did not name as a sender",
                        rank_->rank(), peer));
    }
    return found->second;
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
    launch_transfer(stream, is_emulated() ? 32 : 512, kernel);
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
