#include "common/ranks/launcher_environment.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <sstream>

#include "common/bootstrap/bootstrap.hpp"
#include "common/sys/environment.hpp"
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
    // Not SLURM_NTASKS: it is also set in a batch script, which is no rank. SLURM_STEP_NUM_NODES
    // is the number of hosts.
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr},
};

// They tell the runs of one launcher apart. Each is the same for all ranks of a run.
constexpr const char* kRunVariables[] = {
    "MASTER_ADDR",    "MASTER_PORT",  "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
    "PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID"};

int number(const char* name, int least, int most) {
    const std::string text = env::foreign(name);
    const auto value = number_in(text, least, most);
    if (!value) {
        throw UsageError(
            "{}={} is not a number from {} to {}: correct it, or set "
            "SYMM_LAUNCHER=none",
            name, text, least, most);
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
        if (std::ranges::any_of(kLaunchers, [&](const Launcher& launcher) {
                return entry.starts_with(std::string(launcher.rank) + "=");
            })) {
            return true;
        }
    }
    return false;
}

// Whether a process with a terminal is an interactive shell. A shell that controls jobs ignores
// SIGTTOU, to take the terminal back from a job. It does not pass that on to scripts.
bool controls_jobs(long process) {
    std::istringstream lines(text_of(fmt::format("/proc/{}/status", process)));
    std::uint64_t ignored = 0;
    for (std::string word; lines >> word;) {
        if (word == "SigIgn:") {
            lines >> std::hex >> ignored;
        }
    }
    return (ignored >> (SIGTTOU - 1) & 1) != 0;
}

// The process that started the ranks, as its number and the time of its start: the nearest ancestor
// that is no rank itself. Between it and this process there may be scripts and tools. If that does
// not tell this run's ranks from another's, `why_not` says why.
std::string launching_process(std::string& why_not) {
    for (long process = ::getppid(); process > 0;) {
        // `pid (name) state parent group session terminal ...`; the time of the start is the 22nd
        // field. See proc(5).
        const std::string stat = text_of(fmt::format("/proc/{}/stat", process));
        const std::size_t name_end = stat.rfind(") ");
        std::istringstream fields(name_end == std::string::npos ? "" : stat.substr(name_end + 2));
        std::string state, start;
        long parent = 0, group = 0, session = 0, terminal = 0;
        fields >> state >> parent >> group >> session >> terminal;
        for (int field = 8; field <= 22; ++field) {
            fields >> start;
        }
        if (!is_rank(process)) {
            if (terminal != 0 && controls_jobs(process)) {
                why_not = "an interactive shell started it";
            }
            return fmt::format("{} {}", process, start);
        }
        process = parent;
    }
    why_not = "the process that started it is not in its PID namespace";
    return "";
}

std::string name_of_run(const Launcher& launcher, const Placement& placement) {
    std::string run = env::text("SYMM_BOOTSTRAP");
    if (run.empty()) {
        std::string why_not;
        run = fmt::format("{} {}", launcher.name, launching_process(why_not));
        for (const char* name : kRunVariables) {
            run += fmt::format("\n{}", env::foreign(name));
        }
        if (!why_not.empty() && placement.size > 1 &&
            std::none_of(std::begin(kRunVariables), std::end(kRunVariables), env::is_set)) {
            throw UsageError(
                "{} do not say to which run this rank belongs, and {}. Set "
                "SYMM_BOOTSTRAP to one text for all ranks of a run, and to another for "
                "the next run, or SYMM_LAUNCHER=none if this is no rank",
                placement.variables, why_not);
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
        if (!env::is_set(launcher.rank) || !env::is_set(launcher.size)) {
            continue;
        }
        Placement placement;
        placement.launcher = launcher.name;
        placement.size = number(launcher.size, 1, kMaxRanks);
        placement.rank = number(launcher.rank, 0, placement.size - 1);
        placement.variables = fmt::format("{}={} and {}={}", launcher.rank, placement.rank,
                                          launcher.size, placement.size);
        const bool counts_hosts = launcher.local_size == nullptr;
        const char* const local = counts_hosts ? "SLURM_STEP_NUM_NODES" : launcher.local_size;
        if (env::is_set(local) && number(local, 1, std::numeric_limits<int>::max()) !=
                                      (counts_hosts ? 1 : placement.size)) {
            throw UsageError(
                "{} started {} ranks on several hosts: memory is shared within "
                "one. Start all ranks on one host",
                launcher.name, placement.size);
        }
        placement.name = name_of_run(launcher, placement);
        return placement;
    }
    return {};
}

}  // namespace symm
