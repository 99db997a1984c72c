#include "labs/05_device_prims/ring/ring_communicator.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <stdexcept>

#include "common/cuda/addresses.hpp"
#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/graph.hpp"
#include "common/ranks/peer_watch.hpp"

namespace symm {
namespace {

/// A protocol's kernels and settings. A channel should have at least `least_bytes` of data: then
/// small calls do not start blocks for nothing. On emulated GPUs slots are small, so that tests use
/// them all. LL128 works in warps.
struct Settings {
    const RingKernels* kernels;
    std::uint64_t slot_bytes;
    std::uint64_t emulated_slot_bytes;
    std::size_t least_bytes;
    unsigned emulated_threads;  ///< Threads per block on emulated GPUs.

    unsigned threads() const { return is_emulated() ? emulated_threads : 512; }
};
constexpr std::array kSettings{Settings{&kSimpleKernels, 256 * 1024, 512, 64 * 1024, 8},
                               Settings{&kLLKernels, 16 * 1024, 512, 2 * 1024, 8},
                               Settings{&kLL128Kernels, 32 * 1024, 2048, 16 * 1024, 32}};

const Settings& settings_of(Protocol protocol) {
    return kSettings.at(static_cast<std::size_t>(protocol));
}

bool is_copy(Collective collective) {
    return collective == Collective::kAllGather || collective == Collective::kBroadcast;
}

int previous(const Rank& rank) {
    return (rank.rank() + rank.size() - 1) % rank.size();
}

/// Returns the result of `make`, called with the rank's context current. Collective: if it throws
/// on one rank, this throws on all ranks.
template <class Make>
auto made_on_all(Rank& rank, std::string_view name, const Make& make) {
    return rank.bootstrap().together(name, [&] {
        const CurrentContext current(rank.gpu());
        return make();
    });
}

/// The number of blocks that the current device keeps resident, whatever the kernel.
unsigned resident_blocks_of_all() {
    unsigned resident = std::numeric_limits<unsigned>::max();
    for (const Settings& settings : kSettings) {
        resident = std::min(resident, settings.kernels->resident_blocks(settings.threads()));
    }
    return resident;
}

/// Why lines of 128 bytes may not arrive whole at the next rank; empty if they do. There is no
/// attribute for it. NCCL uses LL128 over NVLink, and NVLink carries atomic operations, which PCIe
/// between GPUs does not.
std::string why_no_lines(const Rank& rank, RingMemory memory) {
    if (memory == RingMemory::kHost) {
        return "the bus to host memory may divide them";
    }
    const std::optional<int> next = rank.device_of((rank.rank() + 1) % rank.size());
    if (next == rank.device()) {
        return "";
    }
    int atomics = 0;
    if (next) {
        cu_check(cuDeviceGetP2PAttribute(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
                                         device_handle(rank.device()), device_handle(*next)),
                 "cuDeviceGetP2PAttribute(NATIVE_ATOMIC_SUPPORTED, source={}, destination={})",
                 rank.device(), *next);
    }
    return atomics != 0 ? ""
                        : fmt::format(
                              "the link from rank {} to the next one may divide them "
                              "(no native atomics, so it is not NVLink)",
                              rank.rank());
}

/// Throws std::invalid_argument if the buffers overlap and the call is not in place.
void require_apart(const RingRequest& call, std::uint64_t bytes, std::uint64_t rank,
                   std::uint64_t ranks) {
    const CollectiveRow& row = row_of(call.collective);
    const bool scatters = row.in_has_parts();
    const bool gathers = row.out_has_parts();
    if (row.has_root() && static_cast<std::uint64_t>(call.root) != rank) {
        return;  // only the root has both
    }
    const bool in_place =
        call.input + (scatters ? rank * bytes : 0) == call.output + (gathers ? rank * bytes : 0);
    if (!in_place && call.input < call.output + (gathers ? ranks : 1) * bytes &&
        call.output < call.input + (scatters ? ranks : 1) * bytes) {
        throw std::invalid_argument(
            "input and output overlap: they have to be apart, or one the rank's own part of the "
            "other");
    }
}

}  // namespace

RingCommunicator::RingCommunicator(Rank& rank, const RingOptions& options)
    : rank_(rank),
      options_(options),
      timeout_(made_on_all(rank, "05: timeout", [&] { return KernelTimeout(options.limit); })) {
    const std::string no_lines =
        made_on_all(rank, "05: links", [&] { return why_no_lines(rank, options.memory); });
    for (const std::string& why : rank.bootstrap().allgather_text("05: LL128", no_lines)) {
        if (why_no_ll128_.empty() && !why.empty()) {
            why_no_ll128_ = "LL128 needs stores of 128 bytes that arrive whole: " + why;
        }
    }
    std::uint32_t channels = options.channels;
    if (channels == 0) {
        channels = is_emulated() ? 2 : options.memory == RingMemory::kHost ? 32 : 128;
    }
    const unsigned resident = made_on_all(rank, "05: resident blocks", resident_blocks_of_all);
    channels = std::min(channels, resident / static_cast<unsigned>(rank.most_on_a_device()));
    // Block b of each rank waits for block b of its neighbours: all ranks need the same number.
    for (const std::uint32_t other : rank.bootstrap().allgather("05: channels", channels)) {
        channels = std::min(channels, other);
    }
    if (channels == 0) {
        throw std::invalid_argument(
            fmt::format("device {} keeps {} blocks resident at once, not one per rank of this "
                        "process: use fewer "
                        "ranks, or --mode process",
                        rank.device(), resident));
    }
    channels_ = channels;
    connect();
}

void RingCommunicator::connect() {
    for (const Protocol protocol : kProtocols) {
        const Settings& settings = settings_of(protocol);
        const std::uint64_t slot_bytes =
            is_emulated() ? settings.emulated_slot_bytes : settings.slot_bytes;
        if (options_.memory == RingMemory::kPeer) {
            neighbours_[protocol] = connect_in_peer_memory(slot_bytes);
        } else if (protocol != Protocol::kLL128) {
            neighbours_[protocol] = connect_in_host_memory(slot_bytes);
        }
    }
}

/// Every rank has in symmetric memory, at the same offsets, the words it polls and the slots it
/// receives into. So a store crosses the link once, and polls and loads stay local.
///
///     rank r:  [ SendMem of r -> r+1 | RecvMem of r-1 -> r | steps of both | slots of r-1 -> r ]
Neighbours RingCommunicator::connect_in_peer_memory(std::uint64_t slot_bytes) {
    const std::size_t receive = channels_ * sizeof(SendMem);
    const std::size_t steps = receive + channels_ * sizeof(RecvMem);
    const std::size_t slots = (steps + 2 * channels_ * sizeof(std::uint64_t) + 127) / 128 * 128;
    const SymmetricRange& range =
        peers_.emplace_back(rank_, slots + channels_ * kSteps * slot_bytes);
    made_on_all(rank_, "05: zeroed connections", [&] { zero(range.local(), range.size()); });
    auto* const counts = range.at<std::uint64_t>(rank_.rank(), steps);
    const auto connection = [&](int sender, std::uint64_t* own_steps) -> Connection {
        const int receiver = (sender + 1) % rank_.size();
        return {range.at<SendMem>(sender),
                range.at<RecvMem>(receiver, receive),
                own_steps,
                range.at<std::byte>(receiver, slots),
                slot_bytes,
                0,
                channels_};
    };
    return {connection(previous(rank_), counts + channels_), connection(rank_.rank(), counts)};
}

Neighbours RingCommunicator::connect_in_host_memory(std::uint64_t slot_bytes) {
    TransportOptions transport;
    transport.channels = channels_;
    transport.slot_bytes = std::min<std::uint64_t>(slot_bytes, 64 * 1024);
    transport.limit = options_.limit;
    const std::array senders{previous(rank_)};
    try {
        hosts_.emplace_back(rank_, senders, transport);
    } catch (...) {
        hosts_.clear();  // here, since an unwinding transport would end the run
        throw;
    }
    return {hosts_.back().connection_from(senders[0]),
            hosts_.back().connection_to((rank_.rank() + 1) % rank_.size())};
}

RingCommunicator::~RingCommunicator() {
    end_calls(rank_, timeout_);
}

std::uint32_t RingCommunicator::channels_of(const RingRequest& call) const {
    const std::size_t bytes = call.count * size_of(call.type);
    const std::size_t least = is_emulated() ? 128 : settings_of(call.protocol).least_bytes;
    return static_cast<std::uint32_t>(
        std::clamp<std::size_t>(bytes / least, 1, std::size_t{channels_}));
}

void RingCommunicator::queue(const RingRequest& call, CUstream stream) {
    calls_.begin(rank_.bootstrap());
    try {
        require_possible(call);
        launch(call, stream);  // if that throws, the kernel is not queued
    } catch (const std::exception&) {
        calls_.refuse();
        throw;
    }
}

void RingCommunicator::require_possible(const RingRequest& call) const {
    require_known(call.collective, call.protocol, call.type, call.op);
    const std::size_t size = size_of(call.type);
    const auto ranks = static_cast<std::size_t>(rank_.size());
    for (const CUdeviceptr buffer : {call.input, call.output, call.next_output}) {
        if (!is_addressable(buffer, call.count, size * ranks)) {
            throw std::invalid_argument(fmt::format("{} x {} at {:#x} do not fit in any memory",
                                                    call.count, name_of(call.type), buffer));
        }
    }
    const CollectiveRow& row = row_of(call.collective);
    if (call.count != 0 && ((call.input == 0 && row.reads(rank_.rank(), call.root)) ||
                            (call.output == 0 && row.writes(rank_.rank(), call.root)))) {
        throw std::invalid_argument("input or output is a null pointer");
    }
    if ((call.input | call.output | call.next_output) % size != 0) {
        throw std::invalid_argument(fmt::format(
            "the addresses of {} buffers have to be multiples of {}", name_of(call.type), size));
    }
    if (call.root < 0 || call.root >= rank_.size()) {
        throw std::invalid_argument(fmt::format(
            "rank {} cannot be the root: there are ranks 0 to {}", call.root, rank_.size() - 1));
    }
    require_apart(call, call.count * size, static_cast<std::uint64_t>(rank_.rank()), ranks);
    if (call.protocol == Protocol::kLL128 && !why_no_ll128_.empty()) {
        throw std::invalid_argument(why_no_ll128_);
    }
}

void RingCommunicator::launch(const RingRequest& call, CUstream stream) {
    if (call.count == 0) {
        return;
    }
    const std::size_t size = size_of(call.type);
    const CurrentContext current(rank_.gpu());
    if (rank_.size() == 1) {
        if (call.input != call.output) {
            cu_check(cuMemcpyAsync(call.output, call.input, call.count * size, stream),
                     "cuMemcpyAsync(size={})", call.count * size);
        }
        return;
    }
    RingLaunch launch{call,
                      rank_.rank(),
                      rank_.size(),
                      channels_of(call),
                      settings_of(call.protocol).threads(),
                      neighbours(call.protocol).from_prev,
                      neighbours(call.protocol).to_next,
                      timeout_.timeout()};
    if (is_copy(call.collective)) {
        launch.request.type = DataType::kUint8;
        launch.request.count *= size;
    }
    settings_of(call.protocol).kernels->launch(stream, launch);
}

void RingCommunicator::synchronize(const Stream& stream, std::string_view what) {
    const CurrentContext current(rank_.gpu());
    timeout_.synchronize(stream, what, [&] { rank_.bootstrap().throw_async_error(what); });
}

}  // namespace symm
