#pragma once
/// \file
/// Our AllReduce and NCCL's in one run: timed in turn, in the same process and loop, on the same
/// buffers, with results checked after each turn.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/nccl/comparison.hpp"
#include "labs/06_allreduce/communicator.hpp"
#include "labs/06_allreduce/result_check.hpp"

namespace symm {

/// How to measure.
struct ComparisonOptions {
    Arithmetic arithmetic;
    Algorithm algorithm = Algorithm::kAuto;
    std::size_t most_bytes = 1 << 20;  ///< Of the largest call: the size of the buffers.
    int iterations = 20;               ///< Calls between two events.
    int rounds = 5;                    ///< Turns per candidate; the result is their median.
    bool in_place = false;
    bool graph = false;  ///< The calls of a turn are one graph rather than launched one by one.
    bool nccl = true;    ///< Compare with NCCL where it is there.
};

/// What one size took. Times are the slowest rank's, of one call, in microseconds.
struct Measured {
    CallPlan plan;
    double ours = 0;
    std::optional<double> nccl;            ///< Its default path.
    std::optional<double> nccl_symmetric;  ///< On registered symmetric windows.
};

/// The bus bandwidth in GB/s, as nccl-tests defines it: bytes/time x 2(n-1)/n.
double bus_bandwidth(std::size_t bytes, int ranks, double microseconds);

/// One rank's side of the comparison. Construction and calls are collective.
class NcclComparison {
public:
    NcclComparison(Rank& rank, Communicator& communicator, const ComparisonOptions& options);

    /// Why the comparison with NCCL is skipped; empty where it is not.
    const std::string& why_no_nccl() const { return why_no_nccl_; }
    /// NCCL's version; empty where the comparison is skipped.
    std::string nccl_version() const { return library_ ? library_->version() : ""; }

    /// Checks one call, then times all candidates in turn. If a result is wrong on one
    /// rank, throws std::runtime_error on every rank.
    Measured run(std::size_t count);

private:
    double time_turn(std::size_t count, const std::function<void()>& call);
    void check_call(std::size_t count, const std::function<void()>& call);
    void find_nccl();

    Rank& rank_;
    Communicator& communicator_;
    ComparisonOptions options_;
    CUdeviceptr in_;
    CUdeviceptr out_;  ///< The same as in_ where in place.
    Stream stream_;
    TurnTimer timer_;
    Verifier verifier_;
    std::string why_no_nccl_;
    std::unique_ptr<NcclLibrary> library_;
    std::unique_ptr<NcclCommunicator> nccl_;
    std::unique_ptr<NcclCommunicator> nccl_symmetric_;
};

}  // namespace symm
