#pragma once
/// \file
/// Machines of an MPI run: which ranks are on one, and the rail between them.
///
/// The ranks of a machine are those whose processes share memory (MPI_COMM_TYPE_SHARED), or every
/// SYMM_RANKS_PER_NODE ranks in a row, to try several machines on one. Machines are numbered by
/// their first rank.
///
/// Each part makes three calls of MPI, all nonblocking: MPI's own waits have no limit.

#include <mpi.h>

#include <memory>
#include <string>

#include "labs/06_allreduce/machines/rail.hpp"

namespace symm {

/// MPI, from MPI_Init_thread to MPI_Finalize, which waits for all ranks: where one has failed, end
/// the run by MPI_Abort.
class MpiSession {
public:
    /// Throws std::runtime_error where MPI cannot be called by another thread than this one.
    MpiSession(int& argc, char**& argv);
    MpiSession(const MpiSession&) = delete;
    MpiSession& operator=(const MpiSession&) = delete;
    ~MpiSession();
};

/// Waits for a nonblocking call, `what`. Throws std::runtime_error where a machine did not come by
/// the deadline. The call cannot be withdrawn, so the run has to end then.
void wait_for_mpi(MPI_Request request, const char* what, Deadline deadline = Deadline::standard());

/// Where this process is among the machines.
struct MpiPlace {
    int machine = 0;
    int machines = 1;
    int rank = 0;  ///< Inside of the machine.
    int ranks = 1;
    std::string name;  ///< Of the machine in this run, for join().
    MPI_Comm rail = MPI_COMM_NULL;

    /// Collective. Throws UsageError where the machines have different numbers of ranks.
    static MpiPlace find();
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
    /// Nothing: the others end after their limit, or with this process .
    void fail(std::string_view) noexcept override {}

private:
    MpiPlace place_;
};

}  // namespace symm
