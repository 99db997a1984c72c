#pragma once
/// \file
/// Ranks that make checked AllReduce calls.

#include <chrono>
#include <vector>

#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/ranks.hpp"
#include "common/tests/sanitized.hpp"
#include "labs/05_device_prims/reduction/result_check.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"

namespace symm {

/// A limit that is over soon, and that a call of all ranks stays below, also where many tests share
/// two cores.
inline constexpr std::chrono::milliseconds kShortLimit{testing::kSanitized ? 2000 : 500};

/// One rank with all it needs for a checked call.
struct Side {
    explicit Side(Rank& r)
        : rank(r),
          communicator(r, {.limit = Deadline::standard_limit()}),
          verifier(r.rank(), r.size()) {}

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
    CallPlan call(CUdeviceptr in, CUdeviceptr out, std::size_t count, const Arithmetic& arithmetic,
                  Algorithm algorithm) {
        const auto [type, op, collective] = arithmetic;
        return communicator.call(collective, in, out, count, type, op, stream.get(), algorithm);
    }
    void check(CUdeviceptr out, std::size_t count, const Arithmetic& arithmetic) {
        rank.bootstrap().together("checked", [&] {
            communicator.synchronize(stream, "the AllReduce");
            verifier.check(stream, arithmetic, out, count);
        });
    }

    CUdeviceptr allocate(std::size_t bytes) { return communicator.allocate(bytes); }

    Rank& rank;
    Communicator communicator;
    Verifier verifier;
    Stream stream;
};

/// Whether calls by the copy engine are possible: on GPUs, each rank needs one of its own.
inline bool has_copy(int ranks) {
    return is_emulated() || device_count() >= ranks;
}

/// For tests of ranks that fail; on GPUs, calls by the copy engine need one for each rank.
inline std::vector<Algorithm> all_algorithms(int ranks) {
    std::vector<Algorithm> all{Algorithm::kOneShot, Algorithm::kSentinel, Algorithm::kPush,
                               Algorithm::kTwoShot, Algorithm::kChunks};
    if (has_copy(ranks)) {
        all.push_back(Algorithm::kCopy);
    }
    return all;
}

/// A call that all ranks make and that succeeds: a rank's first one may wait for all others.
inline void first_call(Communicator& communicator, CUdeviceptr window, const Stream& stream,
                       Algorithm algorithm) {
    communicator.all_reduce(window, window, 1, DataType::kFloat, ReduceOp::kSum, stream.get(),
                            algorithm);
    communicator.synchronize(stream, "the first call");
}

/// Runs `body(side)` on every rank, and keeps all until the last has done.
template <class Body>
void on_ranks(int ranks, const Body& body) {
    run_ranks({ranks, RankMode::kThread, {}}, [&](Rank& rank) {
        Side side(rank);
        body(side);
        rank.bootstrap().barrier("done");
    });
}

}  // namespace symm
