#include "labs/05_device_prims/playground.hpp"

#include <fmt/core.h>

#include <cstddef>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "labs/05_device_prims/launches.hpp"

namespace symm {

std::string_view name_of(Carrier carrier) {
    switch (carrier) {
        case Carrier::kSignal:
            return "signal";
        case Carrier::kRelaxed:
            return "relaxed";
        case Carrier::kPacket:
            return "packet";
    }
    return "unknown";
}

Playground::Playground(Rank& rank, std::chrono::nanoseconds limit)
    : rank_(rank), range_(rank, sizeof(PlayMemory)), watchdog_(limit) {
    if (rank.size() > kMaxBarrierRanks) {
        throw std::invalid_argument(
            fmt::format("at most {} ranks meet in a barrier", kMaxBarrierRanks));
    }
    rank_.rendezvous().together("zeroed playground", [&] {
        check(cuMemsetD8Async(range_.mine(), 0, sizeof(PlayMemory), stream_.get()),
              "cuMemsetD8Async(size={})", sizeof(PlayMemory));
        stream_.synchronize("zeroing the playground");
    });
}

Playground::~Playground() {
    rank_.tell_if_unwinding();
}

double Playground::ping_pong(Carrier carrier, std::uint32_t rounds) {
    if (rank_.size() < 2) {
        throw std::invalid_argument("a ball needs two ranks to be played");
    }
    const std::uint32_t first = played_ + 1;
    played_ += rounds;
    double microseconds = 0;
    // Onlookers stay: what they would give back waits for kernels to end, and a player whose kernel
    // has not started yet would wait for them.
    rank_.rendezvous().together("ping-pong", [&] {
        if (rank_.rank() > 1) {
            return;
        }
        const int peer = 1 - rank_.rank();
        start_.record(stream_.get());
        launch_ping_pong(stream_.get(),
                         {memory_of(rank_.rank()), memory_of(peer), watchdog_.watch(), carrier,
                          rank_.rank(), peer, first, rounds});
        end_.record(stream_.get());
        microseconds = finish(fmt::format("ping-pong by {}", name_of(carrier)), rounds) / 2;
    });
    return microseconds;
}

double Playground::barriers(std::uint32_t rounds, unsigned blocks, unsigned threads) {
    if (blocks == 0 || blocks > kMaxBarrierBlocks) {
        throw std::invalid_argument(
            fmt::format("1 to {} blocks meet in a barrier, not {}", kMaxBarrierBlocks, blocks));
    }
    const std::uint32_t first = barriers_ + 1;
    barriers_ += rounds;
    const BarrierView view{&memory_of(0)->barrier, range_.stride(), rank_.rank(), rank_.size()};
    start_.record(stream_.get());
    launch_barrier_rounds(stream_.get(), {view, memory_of(0), watchdog_.watch(), first, rounds},
                          blocks, threads);
    end_.record(stream_.get());
    return finish("barriers", rounds);
}

double Playground::finish(std::string_view what, std::uint32_t rounds) {
    watchdog_.synchronize(stream_, what, [&] { rank_.rendezvous().look(what); });
    std::uint64_t errors = 0;
    copy_to_host(&errors, range_.mine() + offsetof(PlayMemory, errors), sizeof(errors));
    if (errors != errors_) {
        const std::uint64_t fresh = errors - std::exchange(errors_, errors);
        throw std::runtime_error(fmt::format("{}: rank {} saw {} wrong values in {} rounds", what,
                                             rank_.rank(), fresh, rounds));
    }
    return elapsed_us(start_, end_) / rounds;
}

}  // namespace symm
