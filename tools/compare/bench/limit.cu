#include "tools/compare/bench/limit.hpp"

#include <vector>

#include "common/cuda/driver.hpp"
#include "common/cuda/launch.hpp"
#include "common/nccl/turn_timer.hpp"
#include "labs/02_access/bandwidth.hpp"
#include "labs/05_device_prims/latency_meter.hpp"

namespace symm {
namespace {

constexpr std::size_t kBytes = std::size_t{256} << 20;
constexpr std::uint32_t kRounds = 1000;

struct Empty {
    __host__ __device__ void operator()(const simt::ThreadBlock&) const {}
};

double empty_launch(Rank& rank, int graph_launches) {
    const Stream stream;
    const TurnTimer timer{rank, stream, 200, graph_launches,
                          [&](std::string_view what) { stream.synchronize(what); }};
    const auto launch_one = [&] { launch(stream.get(), 1, 32, Empty{}); };
    return medians_in_turn(1, 5, [&](std::size_t) { return timer.time(launch_one, [] {}); })[0];
}

double ring_rate(int ranks) {
    const std::vector<Gpu> gpus = all_gpus();
    const PeerMatrix matrix = PeerMatrix::query();
    std::vector<Route> ring;
    for (int rank = 0; rank < ranks; ++rank) {
        ring.push_back({rank, (rank + 1) % ranks});
    }
    return TransferBench(gpus, matrix, kBytes).run(Method::kCopyEngine, ring, 16).value_or(0);
}

}  // namespace

double Limit::call(std::size_t bytes, int ranks, Collective collective) const {
    return packet + static_cast<double>(bytes) * row_of(collective).trips() * (ranks - 1) / ranks /
                        (rate * 1e3);
}

std::optional<Limit> measure_limit(Rank& rank, int graph_launches) {
    if (is_emulated() || rank.size() < 2 || rank.size() > device_count() ||
        rank.most_on_a_device() > 1) {
        return {};
    }
    Limit limit;
    LatencyMeter latency(rank);
    latency.ping_pong(Carrier::kPacket, kRounds);  // warms up
    rank.bootstrap().barrier("warm");
    limit.packet = latency.ping_pong(Carrier::kPacket, kRounds);
    limit.launch = empty_launch(rank, graph_launches);
    rank.bootstrap().together("limit", [&] {
        if (rank.rank() == 0) {
            limit.rate = ring_rate(rank.size());
            rank.gpu().make_current();
        }
    });
    return limit.rate > 0 ? std::optional(limit) : std::nullopt;
}

}  // namespace symm
