#pragma once
/// \file
/// Ranks that make checked AllReduce calls.

#include <array>
#include <chrono>
#include <vector>

#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/ranks.hpp"
#include "common/tests/needs.hpp"
#include "common/tests/sanitized.hpp"
#include "labs/05_device_prims/reduction/result_check.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"

namespace symm {

inline constexpr std::array kCollectives{Collective::kAllReduce, Collective::kReduceScatter,
                                         Collective::kAllGather, Collective::kBroadcast,
                                         Collective::kReduce};

/// A limit that is over soon, and that a call of all ranks stays below, also where many tests share
/// two cores.
inline constexpr std::chrono::milliseconds kShortLimit{testing::kSanitized ? 2000 : 500};

/// One rank with all it needs for a checked call.
struct Side {
    explicit Side(Rank& r, const CommunicatorOptions& options = {Deadline::standard_limit()})
        : rank(r), verifier(r.rank(), r.size()), communicator(r, options) {}

    /// Fills the input, poisons the output, reduces, compares. Throws on all ranks where one is
    /// wrong.
    CallPlan reduce_and_check(CUdeviceptr in, CUdeviceptr out, std::size_t count,
                              const Arithmetic& arithmetic, Algorithm algorithm) {
        verifier.poison(stream, arithmetic, out, count);
        verifier.fill(stream, arithmetic, in, count);
        const CallPlan plan = call(in, out, count, arithmetic, algorithm);
        check(out, count, arithmetic);
        return plan;
    }
    /// Queues the call.
    CallPlan call(CUdeviceptr in, CUdeviceptr out, std::size_t count,
                  const Arithmetic& arithmetic = {}, Algorithm algorithm = Algorithm::kAuto) {
        return communicator.call({arithmetic, in, out, count}, stream.get(), algorithm);
    }
    void synchronize() { communicator.synchronize(stream, "the call"); }
    /// A call that all ranks make and that succeeds: a rank's first one may wait for all others.
    void first_call(CUdeviceptr window, Algorithm algorithm) {
        call(window, window, 1, {}, algorithm);
        synchronize();
    }
    void check(CUdeviceptr out, std::size_t count, const Arithmetic& arithmetic) {
        rank.bootstrap().together("checked", [&] {
            synchronize();
            verifier.check(stream, arithmetic, out, count);
        });
    }

    CUdeviceptr allocate(std::size_t bytes) { return communicator.allocate(bytes); }

    Rank& rank;
    Verifier verifier;  // outlives the communicator: to free its memory waits for all kernels
    Communicator communicator;
    Stream stream;
};

/// Whether calls by the copy engine are possible: on GPUs, each rank needs one of its own.
inline bool has_copy(int ranks) {
    return is_emulated() || device_count() >= ranks;
}

/// Whether the switch can add up: it was never asked on real GPUs (docs/DESIGN.md).
inline bool has_switch(int ranks) {
    return is_emulated() && device_count() >= ranks;
}

/// The algorithms by which `ranks` ranks can make the call.
inline std::vector<Algorithm> algorithms_of(int ranks, const Arithmetic& arithmetic = {}) {
    std::vector<Algorithm> all;
    for (const AlgorithmRow& row : algorithm_rows()) {
        if (row.collective == arithmetic.collective &&
            row.supports(arithmetic.type, arithmetic.op) &&
            (!row.needs.own_device || has_copy(ranks)) &&
            (!row.needs.in_switch || has_switch(ranks)) && ranks <= row.needs.most_ranks) {
            all.push_back(row.algorithm);
        }
    }
    return all;
}

/// Those that give the same bits: all but the switch, which adds in its own order.
inline std::vector<Algorithm> same_bits_algorithms_of(int ranks) {
    std::vector<Algorithm> all = algorithms_of(ranks);
    std::erase(all, Algorithm::kMulticast);
    return all;
}

/// Runs `body(side)` on every rank, and keeps all until the last has done.
template <class Body>
void on_ranks(int ranks, const Body& body,
              const CommunicatorOptions& options = {Deadline::standard_limit()}) {
    run_ranks({ranks, RankMode::kThread, {}}, [&](Rank& rank) {
        Side side(rank, options);
        body(side);
        rank.bootstrap().barrier("done");
    });
}

}  // namespace symm
