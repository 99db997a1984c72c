#pragma once
/// \file
/// Which rank this process is, where somebody started it as one.
///
/// | started by  | rank                 | ranks                | of them on this host       |
/// |-------------|----------------------|----------------------|----------------------------|
/// | run_ranks() | SYMM_RANK            | SYMM_RANKS           | all                        |
/// | torchrun    | RANK                 | WORLD_SIZE           | LOCAL_WORLD_SIZE           |
/// | Open MPI    | OMPI_COMM_WORLD_RANK | OMPI_COMM_WORLD_SIZE | OMPI_COMM_WORLD_LOCAL_SIZE |
/// | MPICH       | PMI_RANK             | PMI_SIZE             | MPI_LOCALNRANKS            |
/// | srun        | SLURM_PROCID         | SLURM_STEP_NUM_TASKS | (SLURM_STEP_NUM_NODES)     |
///
/// Memory is shared within one host here, so all ranks have to be on one. SYMM_LAUNCHER=none makes
/// a program start its own ranks, whatever else the environment says.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace symm {

/// A rank's place in a run.
struct Placement {
    int rank = 0;
    int size = 1;
    std::string launcher;             ///< `run_ranks`, `torchrun`, ...
    std::filesystem::path directory;  ///< Where the ranks meet.
    std::uint64_t run = 0;            ///< The run's number; 0 under a launcher.
    pid_t parent = 0;                 ///< The process that started this one; 0 under a launcher.

    /// True for a copy that run_ranks() started, whose errors its parent reports.
    bool is_copy() const { return parent != 0; }
};

/// The place the environment gives this process; nothing where it was started as no rank. Throws
/// UsageError for numbers that make no sense, naming the variable.
std::optional<Placement> placement_from_environment();

}  // namespace symm
