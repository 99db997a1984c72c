#pragma once
/// \file
/// Our collectives and NCCL's in one run: timed in turn, in the same process and loop, on the same
/// buffers, with results checked after each turn.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/nccl/nccl_communicator.hpp"
#include "labs/05_device_prims/reduction/result_check.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"
#include "tools/compare/nccl_device.hpp"

namespace symm {

/// How to measure.
struct ComparisonOptions {
    Arithmetic arithmetic;
    std::size_t most_bytes = 1 << 20;  ///< Size of each buffer.
    int iterations = 20;     ///< Calls per turn. 0: as many as take about 20 ms, from 5 to 200.
    int warm_ups = 1;        ///< Calls before each turn that are not timed, at least 1.
    int graph_launches = 0;  ///< 0: calls are launched one by one. Else they are one graph, which
                             ///< is launched this many times.
    int rounds = 5;          ///< Turns per candidate; the result is their median.
    bool nccl = true;        ///< Compare with NCCL if it is available.
    int windows = 1;         ///< 0: buffers lie in no window, neither ours nor NCCL's.
};

/// The results of one size. Times are the slowest rank's, of one call, in microseconds.
struct Measured {
    CallPlan plan;
    int iterations = 0;  ///< Calls per turn.
    double ours = 0;
    std::optional<double> nccl;            ///< Its default path.
    std::optional<double> nccl_symmetric;  ///< On registered symmetric windows.
    std::optional<double> nccl_device;     ///< Our two shots on NCCL's device API.

    /// The better of NCCL's times divided by ours.
    std::optional<double> ratio() const;
};

/// Set-up times on the slowest rank, in milliseconds.
struct SetUpTimes {
    double first = 0;    ///< Communicator of the process: it also loads kernels.
    double another = 0;  ///< Communicator.
    double windows = 0;  ///< Both buffers registered.
};

/// One rank's side of the comparison: an input and an output buffer, and NCCL's communicators for
/// them. Construction and calls are collective.
class NcclComparison {
public:
    NcclComparison(Rank& rank, Communicator& communicator, const ComparisonOptions& options);

    /// Why the comparison with NCCL is skipped; empty if it is not.
    const std::string& why_no_nccl() const { return why_no_nccl_; }
    /// Why our two shots on NCCL's device API are left out; empty if they are not, and if the
    /// comparison is skipped.
    const std::string& why_no_nccl_device() const { return why_no_nccl_device_; }
    /// NCCL's version; empty if the comparison is skipped.
    std::string nccl_version() const { return library_ ? library_->version() : ""; }

    /// Our windows' time, and NCCL's times; 0 for objects that were not created.
    double our_windows() const { return our_windows_; }
    const SetUpTimes& nccl_set_up() const { return nccl_set_up_; }

    /// Checks one call, then times all candidates in turn. If a result is wrong on one
    /// rank, throws std::runtime_error on every rank.
    Measured run(std::size_t count, bool in_place, Algorithm algorithm = Algorithm::kAuto);

private:
    /// A call of one candidate.
    struct Call {
        std::size_t count;  ///< As in CheckedCall.
        Verifier::Places at;
        bool in_place;
        std::function<void()> make;
    };
    double time_turn(const Call& call, int iterations);
    void check_call(const Call& call);
    void poison(const Call& call);
    void queue(NcclCommunicator& nccl, std::size_t count, const Verifier::Places& at);
    void find_nccl();
    void find_nccl_device(NcclLibrary::Window in, NcclLibrary::Window out);

    Rank& rank_;
    Communicator& communicator_;
    ComparisonOptions options_;
    using Memory = std::unique_ptr<void, void (*)(void*)>;
    static Memory one_segment(std::size_t bytes);

    Memory in_memory_;
    Memory out_memory_;
    double our_windows_ = 0;
    SetUpTimes nccl_set_up_;
    CUdeviceptr in_ = 0;
    CUdeviceptr out_ = 0;
    Stream stream_;
    Verifier verifier_;
    std::string why_no_nccl_;
    std::unique_ptr<NcclLibrary> library_;
    std::unique_ptr<NcclCommunicator> nccl_;
    std::unique_ptr<NcclCommunicator> nccl_symmetric_;
    std::string why_no_nccl_device_;
    NcclDeviceCall nccl_device_;
};

}  // namespace symm
