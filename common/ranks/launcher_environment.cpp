#include "common/ranks/launcher_environment.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <sstream>

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
    const char* local_size;  // ranks on this host
};

constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
    // Not SLURM_NTASKS: it is also set in a batch script, which is no rank.
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr},
};

// They tell the runs of one launcher apart. Each is the same for all ranks of a run.
constexpr const char* kRunVariables[] = {
    "MASTER_ADDR",    "MASTER_PORT",  "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
    "PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID"};

bool is_set(const char* name) {
    return !env::foreign(name).empty();
}

int number(const char* name, int least, int most) {
    const std::string text = env::foreign(name);
    const auto value = number_in(text, least, most);
    if (!value) {
        throw UsageError(
            fmt::format("{}={} is not a number from {} to {}: correct it, or set "
                        "SYMM_LAUNCHER=none",
                        name, text, least, most));
    }
    return *value;
}

std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Whether a process was started as a rank. False if this user may not see its environment.
bool is_rank(long process) {
    std::istringstream entries(text_of(fmt::format("/proc/{}/environ", process)));
    for (std::string entry; std::getline(entries, entry, '\0');) {
        for (const Launcher& launcher : kLaunchers) {
            if (entry.starts_with(std::string(launcher.rank) + "=")) {
                return true;
            }
        }
    }
    return false;
}

// The process that started the ranks, as its number and the time of its start: the nearest ancestor
// that is no rank itself. Between it and this process there may be scripts and tools.
std::string launching_process() {
    long process = ::getppid();
    while (true) {
        // `pid (name) state parent ...`; the time of the start is the 22nd field. See proc(5).
        const std::string stat = text_of(fmt::format("/proc/{}/stat", process));
        const std::size_t name_end = stat.rfind(") ");
        std::istringstream fields(name_end == std::string::npos ? "" : stat.substr(name_end + 2));
        std::string state, ignored, start;
        long parent = 0;
        fields >> state >> parent;
        for (int field = 5; field <= 22; ++field) {
            fields >> (field == 22 ? start : ignored);
        }
        if (parent <= 0 || !is_rank(process)) {
            return fmt::format("{} {}", process, start);
        }
        process = parent;
    }
}

std::string name_of_run(const Launcher& launcher) {
    std::string run = env::text("SYMM_BOOTSTRAP");
    if (run.empty()) {
        run = fmt::format("{} {}", launcher.name, launching_process());
        for (const char* name : kRunVariables) {
            run += fmt::format("\n{}", env::foreign(name));
        }
    }
    // A hash: the text may be secret, and every user can read the names of sockets.
    return fmt::format("symm-{}-{:016x}", ::geteuid(), std::hash<std::string>{}(run));
}

}  // namespace

std::optional<Placement> placement_from_environment() {
    if (env::choice("SYMM_LAUNCHER") == "none") {
        return {};
    }
    for (const Launcher& launcher : kLaunchers) {
        // Both have to be set: RANK alone may be set for another purpose.
        if (!is_set(launcher.rank) || !is_set(launcher.size)) {
            continue;
        }
        Placement placement;
        placement.launcher = launcher.name;
        placement.size = number(launcher.size, 1, kMaxRanks);
        placement.rank = number(launcher.rank, 0, placement.size - 1);
        constexpr int kMost = std::numeric_limits<int>::max();
        const bool several_hosts =
            launcher.local_size == nullptr
                ? is_set("SLURM_STEP_NUM_NODES") && number("SLURM_STEP_NUM_NODES", 1, kMost) != 1
                : is_set(launcher.local_size) &&
                      number(launcher.local_size, 1, kMost) != placement.size;
        if (several_hosts) {
            throw UsageError(
                fmt::format("{} started {} ranks on several hosts: memory is shared within "
                            "one. Start all ranks on one host",
                            launcher.name, placement.size));
        }
        placement.name = name_of_run(launcher);
        return placement;
    }
    return {};
}

}  // namespace symm
