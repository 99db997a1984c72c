#include "common/ranks/launcher.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <limits>

#include "common/bootstrap/bootstrap.hpp"
#include "common/environment/environment.hpp"
#include "common/sys/number.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

struct Launcher {
    const char* name;
    const char* rank;
    const char* size;
    const char* here;  // ranks on this host
    const char* job;   // what tells this run from others of the launcher
};

constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "PMIX_NAMESPACE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", nullptr},
    // Not SLURM_NTASKS: a batch script has it too, and is no rank.
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr, "SLURM_JOB_ID"},
};

// A variable that is empty counts as one that is not set.
std::string variable(const char* name) {
    return name == nullptr ? "" : env::foreign(name);
}

template <class T>
T number(const char* name, T least, T most) {
    const std::string text = variable(name);
    if (text.empty()) {
        throw UsageError(fmt::format(
            "{} is not set: start all ranks with one launcher, or set SYMM_LAUNCHER=none", name));
    }
    const auto value = number_in(text, least, most);
    if (!value) {
        throw UsageError(fmt::format(
            "{}={} is not a number from {} to {}: correct it, or set SYMM_LAUNCHER=none", name,
            text, least, most));
    }
    return *value;
}

Placement place(const char* launcher, const char* rank, const char* size) {
    Placement placement;
    placement.launcher = launcher;
    placement.size = number(size, 1, kMaxRanks);
    placement.rank = number(rank, 0, placement.size - 1);
    return placement;
}

// All ranks of a host have the same parent, the launcher's daemon; its job number tells more where
// a script stands between.
std::filesystem::path meeting_place(const Launcher& launcher) {
    if (const std::string directory = env::text("SYMM_RENDEZVOUS"); !directory.empty()) {
        return directory;
    }
    const std::string job = variable(launcher.job);
    std::string id = !job.empty() ? job : std::to_string(::getppid());
    for (char& c : id) {
        if (c == '/') {
            c = '-';
        }
    }
    std::error_code ignored;
    auto root = std::filesystem::temp_directory_path(ignored);
    return (ignored ? "/tmp" : root) / fmt::format("symm-{}-{}-{}", ::getuid(), launcher.rank, id);
}

}  // namespace

std::optional<Placement> placement_from_environment() {
    if (!variable("SYMM_RANK").empty()) {
        Placement copy = place("run_ranks", "SYMM_RANK", "SYMM_RANKS");
        copy.run = number<std::uint64_t>("SYMM_RUN", 0, std::numeric_limits<std::uint64_t>::max());
        copy.parent = number<pid_t>("SYMM_PARENT", 1, std::numeric_limits<pid_t>::max());
        copy.directory = env::text("SYMM_RENDEZVOUS");
        if (copy.directory.empty()) {
            throw UsageError(
                "SYMM_RANK is set and SYMM_RENDEZVOUS is not: unset SYMM_RANK, which is for "
                "programs that start copies of themselves");
        }
        return copy;
    }
    if (env::choice("SYMM_LAUNCHER") == "none") {
        return {};
    }
    for (const Launcher& launcher : kLaunchers) {
        // Both, since RANK alone is a name that anybody may use for anything.
        if (variable(launcher.rank).empty() || variable(launcher.size).empty()) {
            continue;
        }
        Placement placement = place(launcher.name, launcher.rank, launcher.size);
        const std::string nodes = variable("SLURM_STEP_NUM_NODES");
        if ((!variable(launcher.here).empty() &&
             number(launcher.here, 1, std::numeric_limits<int>::max()) != placement.size) ||
            (launcher.here == nullptr && !nodes.empty() && nodes != "1")) {
            throw UsageError(
                fmt::format("{} started {} ranks on several hosts: memory is shared within "
                            "one. Start all ranks on one host",
                            launcher.name, placement.size));
        }
        placement.directory = meeting_place(launcher);
        return placement;
    }
    return {};
}

}  // namespace symm
