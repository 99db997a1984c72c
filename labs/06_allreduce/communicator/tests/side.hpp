#pragma once
/// \file
/// Ranks that make checked AllReduce calls.

#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"
#include "labs/06_allreduce/communicator/result_check.hpp"

namespace symm {

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
        const auto [type, op] = arithmetic;
        verifier.fill(stream, arithmetic, in, count);
        if (in != out) {
            Verifier::poison(stream, out, count * size_of(type));
        }
        const CallPlan plan =
            communicator.all_reduce(in, out, count, type, op, stream.get(), algorithm);
        check(out, count, arithmetic);
        return plan;
    }
    void check(CUdeviceptr out, std::size_t count, const Arithmetic& arithmetic) {
        rank.bootstrap().together("checked", [&] {
            communicator.synchronize(stream, "the AllReduce");
            verifier.check(stream, arithmetic, out, count);
        });
    }

    CUdeviceptr allocate(std::size_t bytes) {
        return communicator.allocate(bytes, WindowKind::kSymmetric);
    }

    Rank& rank;
    Communicator communicator;
    Verifier verifier;
    Stream stream;
};

/// Whether calls by the copy engine are possible: on GPUs, each rank needs one of its own.
inline bool has_copy(int ranks) {
    return is_emulated() || device_count() >= ranks;
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
