// How a transport is built: its segments, the mappings of the peers' segments, the connections.

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
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

TransportOptions completed(TransportOptions options, int ranks_on_a_device) {
    if (static_cast<unsigned>(options.proxy) > static_cast<unsigned>(ProxySide::kBoth) ||
        static_cast<unsigned>(options.locality) > static_cast<unsigned>(Locality::kReceiver)) {
        throw std::invalid_argument("TransportOptions has an unknown ProxySide or Locality");
    }
    if (options.limit && options.limit->count() <= 0) {
        throw std::invalid_argument("the limit of a transport's waits has to be above 0");
    }
    // Measured on H200s. On an emulated GPU each thread is a host thread, so more channels gain
    // nothing.
    const bool by_kernels = options.proxy == ProxySide::kNone;
    if (options.channels == 0) {
        const unsigned all = by_kernels ? 32 : 4;
        options.channels =
            is_emulated() ? 2 : std::max(1U, all / static_cast<unsigned>(ranks_on_a_device));
    }
    if (options.slot_bytes == 0) {
        options.slot_bytes =
            by_kernels || is_emulated() ? kTransportSlotBytes : kTransportProxySlotBytes;
    }
    return options;
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

bool has_side(ProxySide proxy, ProxySide side) {
    return (static_cast<unsigned>(proxy) & static_cast<unsigned>(side)) != 0;
}

}  // namespace

ShmTransport::ShmTransport(Rank& rank, std::span<const int> senders,
                           const TransportOptions& options)
    : rank_(&rank) {
    std::optional<CurrentContext> current;
    std::optional<RelaxedCaptureMode> relaxed;
    ConnectionPlan local{};
    rank.bootstrap().together("04: options", [&] {
        current.emplace(rank.gpu());
        relaxed.emplace();  // a user may be capturing
        const TransportOptions all = completed(options, rank.most_on_a_device());
        local = {set_of(rank, senders), all.slot_bytes, all.staging_bytes,
                 all.channels,          all.locality,   rank.device()};
        require_in_range(local);
        timeout_ = std::make_unique<KernelTimeout>(all.limit.value_or(Deadline::standard_limit()));
    });
    path_ = agree_on_host_path(rank, options.path);
    build(rank.bootstrap().allgather("04: plans", local), options.proxy);
}

void ShmTransport::build(const std::vector<ConnectionPlan>& plans, ProxySide proxy) {
    // Ranks that are threads share one mapping of each segment, open to the devices of all. With
    // several mappings ThreadSanitizer would not see that two addresses are the same memory.
    std::vector<int> devices{rank_->device()};
    std::vector<SegmentLayout> layouts;
    for (int peer = 0; peer < rank_->size(); ++peer) {
        layouts.emplace_back(plans, peer);
        const int device = plans[static_cast<std::size_t>(peer)].device;
        if (rank_->is_thread() &&
            std::find(devices.begin(), devices.end(), device) == devices.end()) {
            devices.push_back(device);
        }
    }
    rank_->bootstrap().together("04: make segments", [&] {
        std::for_each(plans.begin(), plans.end(), require_in_range);
        segment_ = std::make_shared<HostSegment>();
        const std::size_t bytes = layouts[static_cast<std::size_t>(rank_->rank())].bytes();
        if (bytes != 0) {
            *segment_ = HostSegment::create(path_.path, bytes, devices);
        }
    });
    attach(layouts, devices);
    rank_->bootstrap().together("04: connect", [&] { connect(plans, layouts, proxy); });
}

void ShmTransport::attach(const std::vector<SegmentLayout>& layouts,
                          const std::vector<int>& devices) {
    Bootstrap& bootstrap = rank_->bootstrap();
    const int me = rank_->rank();
    struct Segment {
        std::size_t bytes;
        std::uint64_t number;  // in the registry
    };
    const Registry::Entry entry(segment_);
    const auto segments =
        bootstrap.allgather("04: segments", Segment{segment_->size(), entry.number()});
    std::vector<UniqueFd> local_fd;  // empty if no rank needs it
    bootstrap.together("04: share segments", [&] {
        if (*segment_ && !rank_->is_thread()) {
            local_fd.push_back(segment_->share());
        }
    });
    auto fds = bootstrap.exchange("04: file descriptors", local_fd);

    bootstrap.together("04: attach segments", [&] {
        const SegmentLayout& local = layouts[static_cast<std::size_t>(me)];
        for (int peer = 0; peer < rank_->size(); ++peer) {
            const auto index = static_cast<std::size_t>(peer);
            if (!local.has(Part::kSend, me, peer) && !local.has(Part::kReceive, peer, me)) {
                continue;
            }
            if (segments[index].bytes < layouts[index].bytes()) {
                throw std::runtime_error(
                    fmt::format("rank {}'s segment of {} bytes is smaller than its connections, {}",
                                peer, segments[index].bytes, layouts[index].bytes()));
            }
            if (peer == me) {
                segments_[peer] = segment_;
            } else if (rank_->is_thread()) {
                segments_[peer] =
                    std::static_pointer_cast<HostSegment>(Registry::find(segments[index].number));
                if (!segments_[peer]) {
                    throw std::runtime_error(fmt::format("rank {} has released its segment", peer));
                }
            } else {
                segments_[peer] = std::make_shared<HostSegment>(HostSegment::attach(
                    path_.path, std::move(fds[index].at(0)), segments[index].bytes, devices));
            }
        }
    });
    // All have attached: a rank that ends now does not take its segment from the others.
}

void ShmTransport::connect(const std::vector<ConnectionPlan>& plans,
                           const std::vector<SegmentLayout>& layouts, ProxySide proxy) {
    const int me = rank_->rank();
    const auto shared = [&](int from, int to) -> Connection {
        const ConnectionPlan& plan = plans[static_cast<std::size_t>(to)];
        const auto part = [&](Part which, int owner) {
            const HostSegment& segment = owner == me ? *segment_ : *segments_.at(owner);
            return segment.address() +
                   layouts[static_cast<std::size_t>(owner)].offset(which, from, to);
        };
        const int owner = plan.locality == Locality::kSender ? from : to;
        return {reinterpret_cast<SendMem*>(part(Part::kSend, from)),
                reinterpret_cast<RecvMem*>(part(Part::kReceive, to)),
                nullptr,
                reinterpret_cast<std::byte*>(part(Part::kBuffer, owner)),
                plan.slot_bytes,
                plan.staging_bytes,
                plan.channels};
    };
    // The kernel's connection: to the proxy, if this side has one.
    const auto of_kernel = [&](int peer, const Connection& connection, bool sends) {
        const bool hop = has_side(proxy, sends ? ProxySide::kSender : ProxySide::kReceiver);
        return hop ? add_hop(peer, connection, sends) : connection;
    };
    for (int peer = 0; peer < rank_->size(); ++peer) {
        if (plans[static_cast<std::size_t>(peer)].receives_from(me)) {
            const Connection connection = shared(me, peer);
            outbound_[peer] = {
                of_kernel(peer, connection, true),
                reinterpret_cast<CUdeviceptr>(connection.buffer + connection.slots_bytes())};
        }
        if (plans[static_cast<std::size_t>(me)].receives_from(peer)) {
            inbound_[peer] = of_kernel(peer, shared(peer, me), false);
        }
    }
    require_resident();
    add_steps();
    start_proxies();
}

// One counter for each channel of each of this rank's ends.
void ShmTransport::add_steps() {
    std::vector<Connection*> all;
    for (auto& [peer, outbound] : outbound_) {
        all.push_back(&outbound.connection);
    }
    for (auto& [peer, connection] : inbound_) {
        all.push_back(&connection);
    }
    if (all.empty()) {
        return;
    }
    steps_.emplace(all.size() * kMostChannels * sizeof(std::uint64_t));
    auto* next = steps_->as<std::uint64_t>();
    for (Connection* connection : all) {
        connection->steps = next;
        next += kMostChannels;
    }
}

void ShmTransport::start_proxies() {
    std::vector<ProxyRoute> sends;
    std::vector<ProxyRoute> receives;
    for (const LocalHop& hop : hops_) {
        for (const auto& segment : {segment_, segments_.at(hop.peer)}) {
            if (segment->host() != reinterpret_cast<void*>(segment->address())) {
                throw std::runtime_error(
                    "a proxy needs host memory with one address for the host and for GPUs, and "
                    "this machine gives registered memory two");
            }
        }
        for (std::uint32_t channel = 0; channel < hop.connection.channels; ++channel) {
            const ConnectionEnd local = hop.connection.end(channel);
            const ConnectionEnd shared = hop.shared.end(channel);
            hop.sends ? sends.push_back({local, shared, hop.peer})
                      : receives.push_back({shared, local, hop.peer});
        }
    }
    const auto abort = [timeout = timeout_.get()] { timeout->abort(); };
    if (!sends.empty()) {
        send_proxy_ = std::make_unique<Proxy>(rank_->device(), sends, abort);
    }
    if (!receives.empty()) {
        receive_proxy_ = std::make_unique<Proxy>(rank_->device(), receives, abort);
    }
}

// All blocks of a transfer must run at the same time, and so must those of ranks of this process
// that share its device.
void ShmTransport::require_resident() const {
    unsigned most_out = 0;
    unsigned most_in = 0;
    for (const auto& [peer, outbound] : outbound_) {
        most_out = std::max(most_out, outbound.connection.channels);
    }
    for (const auto& [peer, connection] : inbound_) {
        most_in = std::max(most_in, connection.channels);
    }
    const unsigned resident =
        transfer_resident_blocks() / static_cast<unsigned>(rank_->most_on_a_device());
    if (most_out + most_in > resident) {
        throw std::invalid_argument(fmt::format(
            "{} channels to send and {} to receive are more blocks than the {} that device {} "
            "keeps resident at once per rank: use fewer channels",
            most_out, most_in, resident, rank_->device()));
    }
}

const Connection& ShmTransport::add_hop(int peer, const Connection& shared, bool sends) {
    const std::size_t control_bytes = shared.channels * (sizeof(SendMem) + sizeof(RecvMem));
    LocalHop& hop = hops_.emplace_back(LocalHop{pinned_calloc(control_bytes),
                                                DeviceMemory(shared.slots_bytes()), shared, shared,
                                                peer, sends});
    hop.connection.send = hop.control.as<SendMem>();
    hop.connection.receive = reinterpret_cast<RecvMem*>(hop.connection.send + shared.channels);
    hop.connection.buffer = hop.slots.as<std::byte>();
    hop.connection.staging_bytes = 0;
    return hop.connection;
}

}  // namespace symm
