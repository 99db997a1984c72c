#pragma once
/// \file
/// `05_device_prims ring`: collectives on a ring, checked, timed and compared with NCCL's rings.

#include <cstddef>
#include <string>

#include "common/cli/cli.hpp"
#include "common/cli/rank_options.hpp"

namespace symm {

struct RingCommandOptions {
    std::string collective = "allreduce";
    std::string protocols = "all";
    std::string memory = "peer";
    std::string type = "float";
    std::string op = "sum";
    std::string bytes = "64K";
    std::size_t factor = 4;
    int iterations = 0;
    int rounds = 5;
    std::uint32_t channels = 0;
    bool direct = false;
    bool graph = false;
    bool no_nccl = false;
    std::string trace;
};

/// Adds the subcommand. `options` must outlive the parsing.
CLI::App& add_ring_command(CLI::App& app, RingCommandOptions& options);

/// Runs it. Returns the exit code. Throws UsageError, and std::runtime_error for a wrong result.
int run_ring_command(const RankOptions& ranks, const RingCommandOptions& options);

}  // namespace symm
