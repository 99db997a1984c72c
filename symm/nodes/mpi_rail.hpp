#pragma once
/// \file
/// Machines of an MPI run: the ranks on each machine, and the rail between machines.
///
/// The ranks of a machine are those whose processes share memory (MPI_COMM_TYPE_SHARED), or every
/// SYMM_RANKS_PER_NODE ranks in a row, to try several machines on one. Machines are numbered by
/// their first rank.
///
/// Each part takes three MPI calls, all nonblocking, and polls until a deadline.

#include <mpi.h>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "common/sys/creator_process.hpp"
#include "symm/nodes/rail.hpp"

namespace symm {

/// MPI, from MPI_Init_thread to MPI_Finalize, which waits for all ranks: if one has failed, end the
/// run with MPI_Abort. A thread watches the time that steps of MPI take.
class MpiSession {
public:
    /// Throws std::runtime_error if MPI cannot be called by a thread other than this one.
    MpiSession(int& argc, char**& argv);
    MpiSession(const MpiSession&) = delete;
    ~MpiSession();

    /// A call of MPI follows that waits for other ranks. If neither the next step begins nor
    /// end_steps() is called within SYMM_TIMEOUT, prints `call` and ends the process with exit
    /// status 1: MPI's own waits have no limit, and cannot be ended.
    void step(const char* call);
    void end_steps() { step(nullptr); }

private:
    void watch(const std::stop_token& ended);

    std::mutex mutex_;
    NotInChild<std::condition_variable_any> changed_;
    const char* call_ = nullptr;  ///< Null between steps.
    std::size_t steps_ = 0;
    Deadline deadline_ = Deadline::standard();
    CreatorProcess creator_;
    NotInChild<std::jthread> watch_;  ///< Ends first.
};

/// The place of this process among the machines.
struct MpiPlace {
    int machine = 0;
    int machines = 1;
    int rank = 0;  ///< Inside of the machine.
    int ranks = 1;
    std::string name;  ///< The machine's name in this run, for join().
    MPI_Comm rail = MPI_COMM_NULL;

    /// Collective. Throws UsageError if the machines have different numbers of ranks.
    static MpiPlace find(MpiSession& session);
};

class MpiRail final : public Rail {
public:
    explicit MpiRail(const MpiPlace& place) : place_(place) {}

    int machine() const override { return place_.machine; }
    int machines() const override { return place_.machines; }
    void all_to_all(const std::byte* from, std::byte* to, std::size_t bytes,
                    Deadline deadline) override;
    void all_gather(const std::byte* from, std::byte* to, std::size_t bytes,
                    Deadline deadline) override;
    /// Does nothing: the others end after their limit, or with this process.
    void fail(std::string_view) noexcept override {}

private:
    MpiPlace place_;
};

}  // namespace symm
