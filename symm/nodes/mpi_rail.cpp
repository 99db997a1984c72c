#include "symm/nodes/mpi_rail.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/sys/environment.hpp"
#include "common/sys/error_text.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

int rank_in(MPI_Comm communicator) {
    int rank = 0;
    MPI_Comm_rank(communicator, &rank);
    return rank;
}

int size_of_communicator(MPI_Comm communicator) {
    int size = 0;
    MPI_Comm_size(communicator, &size);
    return size;
}

MPI_Comm split(int color, int key) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &part);
    return part;
}

MPI_Comm ranks_of_machine(int rank) {
    auto each = static_cast<int>(env::number("SYMM_RANKS_PER_NODE"));
    MPI_Bcast(&each, 1, MPI_INT, 0, MPI_COMM_WORLD);  // rank 0's, for all
    if (each != 0) {
        return split(rank / each, rank);
    }
    MPI_Comm machine = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine);
    return machine;
}

/// Waits for a nonblocking call, `what`. Throws std::runtime_error if a machine did not arrive by
/// the deadline. The call cannot be withdrawn, so the run must end then.
void wait_for_mpi(MPI_Request request, const char* what, Deadline deadline) {
    int done = 0;
    for (int polls = 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE), done == 0; ++polls) {
        if (deadline.passed()) {
            throw std::runtime_error(fmt::format("{}: a machine did not arrive within {:.3g} s",
                                                 what, deadline.seconds()));
        }
        if (polls > 1000) {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }
}

}  // namespace

MpiSession::MpiSession(int& argc, char**& argv)
    : watch_([this](const std::stop_token& ended) { watch(ended); }) {
    int provided = 0;
    step("MPI_Init_thread");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    end_steps();
    if (provided < MPI_THREAD_MULTIPLE) {
        throw std::runtime_error("this MPI does not support MPI_THREAD_MULTIPLE");
    }
}

MpiSession::~MpiSession() {
    if (!creator_.is_this_one()) {
        return;  // a child of fork() has no MPI
    }
    step("MPI_Finalize");
    MPI_Finalize();
    end_steps();
}

void MpiSession::step(const char* call) {
    {
        const std::lock_guard lock(mutex_);
        call_ = call;
        ++steps_;
        deadline_ = Deadline::standard();
    }
    changed_->notify_all();
}

void MpiSession::watch(const std::stop_token& ended) {
    std::unique_lock lock(mutex_);
    while (!ended.stop_requested()) {
        const auto next = [&, now = steps_] { return steps_ != now; };
        if (call_ == nullptr) {
            changed_->wait(lock, ended, next);
        } else if (!changed_->wait_until(lock, ended, deadline_.end(), next) &&
                   !ended.stop_requested()) {
            report_error(fmt::format(
                "{} did not return within {:.3g} s (SYMM_TIMEOUT): a rank of this run is stopped, "
                "has ended without MPI_Finalize, or did not call it",
                call_, deadline_.seconds()));
            std::_Exit(kExitFailed);
        }
    }
}

MpiPlace MpiPlace::find(MpiSession& session) {
    const int rank = rank_in(MPI_COMM_WORLD);
    session.step("MPI_Bcast and MPI_Comm_split by machine");
    const MPI_Comm inside = ranks_of_machine(rank);
    MpiPlace place;
    place.rank = rank_in(inside);
    place.ranks = size_of_communicator(inside);
    // Process id and time of the machine's first rank: no other run has both.
    std::array<long, 2> name{::getpid(),
                             std::chrono::steady_clock::now().time_since_epoch().count()};
    session.step("MPI_Bcast of the machine's name");
    MPI_Bcast(name.data(), 2, MPI_LONG, 0, inside);
    place.name = fmt::format("symm-{}-{}-{}", ::geteuid(), name[0], name[1]);
    session.step("MPI_Comm_split by rail");
    place.rail = split(place.rank, rank);
    place.machine = rank_in(place.rail);
    place.machines = size_of_communicator(place.rail);
    // If machines have different numbers of ranks, some rails are shorter than others.
    std::vector<int> sizes(static_cast<std::size_t>(size_of_communicator(MPI_COMM_WORLD)));
    const int own = place.rank == 0 ? place.ranks : 0;
    session.step("MPI_Allgather of the machines' sizes");
    MPI_Allgather(&own, 1, MPI_INT, sizes.data(), 1, MPI_INT, MPI_COMM_WORLD);
    session.end_steps();
    std::erase(sizes, 0);
    for (const int size : sizes) {
        if (size != sizes[0]) {
            throw UsageError("all machines need the same number of ranks, but they have {}",
                             fmt::join(sizes, ", "));
        }
    }
    return place;
}

void MpiRail::all_to_all(const std::byte* from, std::byte* to, std::size_t bytes,
                         Deadline deadline) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int count = static_cast<int>(bytes);
    MPI_Ialltoall(from, count, MPI_BYTE, to, count, MPI_BYTE, place_.rail, &request);
    wait_for_mpi(request, "MPI_Ialltoall", deadline);
}

void MpiRail::all_gather(const std::byte* from, std::byte* to, std::size_t bytes,
                         Deadline deadline) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int count = static_cast<int>(bytes);
    const bool in_its_place = from == to + static_cast<std::size_t>(place_.machine) * bytes;
    MPI_Iallgather(in_its_place ? MPI_IN_PLACE : from, count, MPI_BYTE, to, count, MPI_BYTE,
                   place_.rail, &request);
    wait_for_mpi(request, "MPI_Iallgather", deadline);
}

}  // namespace symm
