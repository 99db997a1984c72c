#include "labs/05_device_prims/latency_meter.hpp"

#include <fmt/core.h>

#include <cstddef>
#include <stdexcept>

#include "common/cuda/copy.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"

namespace symm {

LatencyMeter::LatencyMeter(Rank& rank, std::chrono::nanoseconds limit)
    : rank_(rank), range_(rank, sizeof(LatencyMemory)), timeout_(limit) {
    if (rank.size() > kMaxBarrierRanks) {
        throw std::invalid_argument(
            fmt::format("at most {} ranks meet in a barrier", kMaxBarrierRanks));
    }
    rank_.bootstrap().together("zeroed buffers",
                               [&] { zero(range_.local(), sizeof(LatencyMemory)); });
}

LatencyMeter::~LatencyMeter() {
    rank_.tell_if_unwinding();
}

double LatencyMeter::ping_pong(Carrier carrier, std::uint32_t rounds) {
    if (rank_.size() < 2) {
        throw std::invalid_argument("the latency test needs two ranks");
    }
    const std::uint32_t first = rounds_ + 1;
    rounds_ += rounds;
    double microseconds = 0;
    // The other ranks stay until the test has ended. If they freed memory earlier, that call would
    // wait for all kernels on their device, and a kernel of the test that has not been launched yet
    // would have to wait for that call: a deadlock.
    rank_.bootstrap().together("ping-pong", [&] {
        if (rank_.rank() > 1) {
            return;
        }
        const int peer = 1 - rank_.rank();
        start_.record(stream_.get());
        launch(stream_.get(), 1, 1,
               PingPong{memory_of(rank_.rank()), memory_of(peer), timeout_.timeout(), carrier,
                        rank_.rank(), peer, first, rounds});
        end_.record(stream_.get());
        microseconds = finish(fmt::format("ping-pong by {}", name_of(carrier)), rounds) / 2;
    });
    return microseconds;
}

double LatencyMeter::barriers(std::uint32_t rounds, unsigned blocks, unsigned threads) {
    if (blocks == 0 || blocks > kMaxBarrierBlocks) {
        throw std::invalid_argument(
            fmt::format("1 to {} blocks meet in a barrier, not {}", kMaxBarrierBlocks, blocks));
    }
    const std::uint32_t first = barriers_ + 1;
    barriers_ += rounds;
    start_.record(stream_.get());
    launch(stream_.get(), blocks, threads,
           BarrierRounds{range_.pointer<LatencyMemory>(), rank_.rank(), rank_.size(),
                         timeout_.timeout(), first, rounds});
    end_.record(stream_.get());
    return finish("barriers", rounds);
}

std::array<std::uint32_t, kMaxBarrierRanks> LatencyMeter::inbox() const {
    std::array<std::uint32_t, kMaxBarrierRanks> flags{};
    copy_to_host(flags.data(), range_.local() + offsetof(LatencyMemory, barrier.inbox),
                 sizeof(flags));
    return flags;
}

unsigned LatencyMeter::resident_blocks(unsigned threads) {
    return symm::resident_blocks<BarrierRounds>(threads);
}

double LatencyMeter::finish(std::string_view what, std::uint32_t rounds) {
    timeout_.synchronize(stream_, what, [&] { rank_.bootstrap().throw_async_error(what); });
    std::uint64_t errors = 0;
    copy_to_host(&errors, range_.local() + offsetof(LatencyMemory, errors), sizeof(errors));
    if (errors != errors_) {
        const std::uint64_t fresh = errors - std::exchange(errors_, errors);
        throw std::runtime_error(fmt::format("{}: rank {} saw {} wrong values in {} rounds", what,
                                             rank_.rank(), fresh, rounds));
    }
    return elapsed_us(start_, end_) / rounds;
}

}  // namespace symm
