// How a transport is built: its segments, the mappings of the peers' segments, the connections.

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/graph.hpp"
#include "common/ranks/rank.hpp"
#include "common/ranks/registry.hpp"
#include "labs/04_shm_transport/connection/transfer_kernel.hpp"
#include "labs/04_shm_transport/transport/transport.hpp"

namespace symm {
namespace {

constexpr std::uint32_t kMostChannels = 64;
constexpr std::uint64_t kMostSlotBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostStagingBytes = std::uint64_t{1} << 34;
static_assert(kMaxRanks <= 64, "a set of ranks is the bits of one word");

// This rank's plan, with the defaults filled in.
ConnectionPlan plan_of(const Rank& rank, std::span<const int> senders,
                       const TransportOptions& options) {
    std::uint64_t set = 0;
    for (const int sender : senders) {
        if (sender < 0 || sender >= rank.size()) {
            throw std::invalid_argument(
                fmt::format("rank {} cannot receive from rank {}: there are ranks 0 to {}",
                            rank.rank(), sender, rank.size() - 1));
        }
        set |= std::uint64_t{1} << sender;
    }
    require_known(options.proxy, options.locality);
    // Measured on H200s. On an emulated GPU each thread is a host thread, so more channels gain
    // nothing. With a proxy, slots are larger: each copy costs the copy engine 2 us more.
    const bool by_kernels = options.proxy == ProxySide::kNone;
    const unsigned all = by_kernels ? 32 : 4;
    const unsigned channels =
        is_emulated() ? 2 : std::max(1U, all / static_cast<unsigned>(rank.most_on_a_device()));
    const std::uint64_t slot_bytes = std::uint64_t{by_kernels || is_emulated() ? 64U : 2048U} << 10;
    return {set,
            options.slot_bytes == 0 ? slot_bytes : options.slot_bytes,
            options.staging_bytes,
            options.channels == 0 ? channels : options.channels,
            options.locality,
            rank.device()};
}

// Also for the plans of other ranks, which come from other processes.
void require_in_range(const ConnectionPlan& plan) {
    constexpr std::size_t kUnit = alignof(RecvMem);
    if (plan.channels == 0 || plan.channels > kMostChannels || plan.slot_bytes == 0 ||
        plan.slot_bytes % kUnit != 0 || plan.slot_bytes > kMostSlotBytes ||
        plan.staging_bytes % kUnit != 0 || plan.staging_bytes > kMostStagingBytes) {
        throw std::invalid_argument(fmt::format(
            "a transport of {} channels, slots of {} bytes and {} bytes of staging: use at most "
            "{} channels, slots of a multiple of {} bytes up to {}, and staging up to {}",
            plan.channels, plan.slot_bytes, plan.staging_bytes, kMostChannels, kUnit,
            kMostSlotBytes, kMostStagingBytes));
    }
}

}  // namespace

ShmTransport::ShmTransport(Rank& rank, std::span<const int> senders,
                           const TransportOptions& options)
    : rank_(&rank) {
    std::optional<CurrentContext> current;
    std::optional<RelaxedCapture> relaxed;
    ConnectionPlan local{};
    rank.bootstrap().together("04: options", [&] {
        current.emplace(rank.gpu());
        relaxed.emplace();  // a user may be capturing
        local = plan_of(rank, senders, options);
        require_in_range(local);
        const auto limit = options.limit.value_or(Deadline::standard_limit());
        if (limit.count() <= 0) {
            throw std::invalid_argument("the limit of a transport's waits has to be above 0");
        }
        timeout_ = std::make_unique<KernelTimeout>(limit);
    });
    path_ = agree_on_host_path(rank, options.path);
    const auto plans = rank.bootstrap().allgather("04: plans", local);

    const SegmentLayout layout(plans);
    share_segments(plans, layout.bytes[static_cast<std::size_t>(rank.rank())]);
    rank.bootstrap().together("04: connect", [&] { connect(plans, layout, options.proxy); });
}

void ShmTransport::share_segments(const std::vector<ConnectionPlan>& plans, std::size_t bytes) {
    Bootstrap& bootstrap = rank_->bootstrap();
    const int me = rank_->rank();
    // Ranks that are threads share one mapping of each segment, open to the devices of all. With
    // several mappings ThreadSanitizer would not see that two addresses are the same memory.
    std::vector<int> devices{rank_->device()};
    for (const ConnectionPlan& plan : plans) {
        if (rank_->is_thread() && std::ranges::find(devices, plan.device) == devices.end()) {
            devices.push_back(plan.device);
        }
    }
    std::vector<UniqueFd> local_fd;  // empty if no rank needs it
    const auto local = bootstrap.together("04: make segments", [&] {
        std::ranges::for_each(plans, require_in_range);
        auto segment = std::make_shared<HostSegment>();
        if (bytes > 0) {
            *segment = HostSegment::create(path_.path, bytes, devices);
            if (!rank_->is_thread()) {
                local_fd.push_back(segment->share());
            }
        }
        return segment;
    });
    struct Segment {
        std::size_t bytes;
        std::uint64_t number;  // in the registry
    };
    const Registry::Entry entry(local);
    const auto segments =
        bootstrap.allgather("04: segments", Segment{local->size(), entry.number()});
    auto fds = bootstrap.exchange("04: file descriptors", local_fd);

    segments_[me] = local;
    bootstrap.together("04: attach segments", [&] {
        for (int peer = 0; peer < rank_->size(); ++peer) {
            const auto index = static_cast<std::size_t>(peer);
            if (peer == me || (!plans[index].receives_from(me) &&
                               !plans[static_cast<std::size_t>(me)].receives_from(peer))) {
                continue;
            }
            const auto& [size, number] = segments[index];
            segments_[peer] = rank_->is_thread()
                                  ? std::static_pointer_cast<HostSegment>(Registry::find(number))
                                  : std::make_shared<HostSegment>(HostSegment::attach(
                                        path_.path, std::move(fds[index].at(0)), size, devices));
            if (!segments_[peer]) {
                throw std::runtime_error(fmt::format("rank {} has released its segment", peer));
            }
        }
    });
    // All have attached: a rank that ends now does not take its segment from the others.
}

void ShmTransport::connect(const std::vector<ConnectionPlan>& plans, const SegmentLayout& layout,
                           ProxySide proxy) {
    const int me = rank_->rank();
    const auto plan = [&](int rank) -> const ConnectionPlan& {
        return plans[static_cast<std::size_t>(rank)];
    };
    const auto shared = [&](int from, int to) -> Connection {
        const SegmentLayout::Parts& parts = layout.parts.at({from, to});
        const auto at = [this](int owner, std::size_t offset) {
            return segments_.at(owner)->address() + offset;
        };
        return {reinterpret_cast<SendMem*>(at(from, parts.send)),
                reinterpret_cast<RecvMem*>(at(to, parts.receive)),
                nullptr,
                reinterpret_cast<std::byte*>(at(parts.buffer_owner, parts.buffer)),
                plan(to).slot_bytes,
                plan(to).staging_bytes,
                plan(to).channels};
    };
    // With a proxy, the connection that kernels use ends at the proxy, in this GPU's memory.
    const auto make_link = [&](const Connection& connection, ProxySide side) {
        const std::uint32_t channels = connection.channels;
        Link link{connection, connection, DeviceMemory(channels * sizeof(std::uint64_t))};
        link.kernels.steps = link.steps.as<std::uint64_t>();
        if ((static_cast<unsigned>(proxy) & static_cast<unsigned>(side)) != 0) {
            link.control = pinned_calloc(channels * (sizeof(SendMem) + sizeof(RecvMem)));
            link.slots.emplace(connection.slots_bytes());
            link.kernels.send = link.control->as<SendMem>();
            link.kernels.receive = reinterpret_cast<RecvMem*>(link.kernels.send + channels);
            link.kernels.buffer = link.slots->as<std::byte>();
            link.kernels.staging_bytes = 0;
        }
        return link;
    };
    for (int peer = 0; peer < rank_->size(); ++peer) {
        if (plan(peer).receives_from(me)) {
            out_.by_peer.emplace(peer, make_link(shared(me, peer), ProxySide::kSender));
        }
        if (plan(me).receives_from(peer)) {
            in_.by_peer.emplace(peer, make_link(shared(peer, me), ProxySide::kReceiver));
        }
    }
    require_resident();
    start_proxy(out_);
    start_proxy(in_);
}

// All blocks of a transfer must run at the same time, and so must those of ranks of this process
// that share its device.
void ShmTransport::require_resident() const {
    const auto most_channels = [](const Links& links) {
        unsigned most = 0;
        for (const auto& [peer, link] : links.by_peer) {
            most = std::max(most, link.kernels.channels);
        }
        return most;
    };
    const unsigned resident =
        transfer_resident_blocks() / static_cast<unsigned>(rank_->most_on_a_device());
    if (most_channels(out_) + most_channels(in_) > resident) {
        throw std::invalid_argument(fmt::format(
            "{} channels to send and {} to receive are more blocks than the {} that device {} "
            "keeps resident at once per rank: use fewer channels",
            most_channels(out_), most_channels(in_), resident, rank_->device()));
    }
}

void ShmTransport::start_proxy(Links& links) {
    std::vector<ProxyRoute> routes;
    for (const auto& [peer, link] : links.by_peer) {
        if (!link.slots) {
            return;  // and no other link has a proxy
        }
        for (const int rank : {rank_->rank(), peer}) {
            const HostSegment& segment = *segments_.at(rank);
            if (segment.host() != reinterpret_cast<void*>(segment.address())) {
                throw std::runtime_error(
                    "a proxy needs host memory with one address for the host and for GPUs, and "
                    "this machine gives registered memory two");
            }
        }
        for (std::uint32_t channel = 0; channel < link.kernels.channels; ++channel) {
            const ConnectionEnd local = link.kernels.end(channel);
            const ConnectionEnd shared = link.shared.end(channel);
            routes.push_back(&links == &out_ ? ProxyRoute{local, shared, peer}
                                             : ProxyRoute{shared, local, peer});
        }
    }
    if (!routes.empty()) {
        links.proxy = std::make_unique<Proxy>(rank_->device(), routes,
                                              [timeout = timeout_.get()] { timeout->abort(); });
    }
}

}  // namespace symm
