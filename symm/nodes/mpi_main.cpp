// AllReduces over the machines of an MPI run: mpirun starts one process per rank. Every element is
// checked against the reference.

#include <fmt/core.h>

#include <chrono>
#include <thread>

#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/cli/cli.hpp"
#include "common/sys/bytes.hpp"
#include "common/sys/error_text.hpp"
#include "symm/nodes/mpi_rail.hpp"
#include "symm/nodes/node_calls.hpp"

namespace {

using namespace symm;

/// Ends the run: MPI_Finalize would wait for ranks that do not know of the error.
void abort_all(const std::string& text, int exit_code) {
    report_error(text);
    // When a rank aborts, mpirun drops output that it has not read yet.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    MPI_Abort(MPI_COMM_WORLD, exit_code);
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("AllReduce over several machines, connected by MPI.", "06_allreduce_mpi");
    std::string bytes = "64K";
    NodeCalls calls{.factor = 4};
    app.add_option("--bytes", bytes, "Size of a buffer, such as 64K, or a range, such as 1K:1M")
        ->capture_default_str();
    add_number_option<std::size_t>(app, "--factor", calls.factor, 2, 1024,
                                   "Factor from one size of a range to the next");
    add_choice(app, "--dtype", calls.arithmetic.type, "Type of the elements");
    add_choice(app, "--op", calls.arithmetic.op, "Operation: sum, prod, min, max or avg");
    app.add_flag("--inplace", calls.in_place, "Input and output are the same buffer");
    add_number_option(app, "-n,--iterations", calls.iterations, 1, 100'000'000,
                      "Calls of each size");
    app.footer(
        "Try: mpirun --oversubscribe -np 4 -x SYMM_RANKS_PER_NODE=2 06_allreduce_mpi\n"
        "SYMM_RANKS_PER_NODE splits one machine into several.");
    return run_main(app, argc, argv, [&] {
        calls.sizes = parse_byte_range("--bytes", bytes);
        MpiSession session(argc, argv);
        MpiPlace place;
        try {
            place = MpiPlace::find(session);
            Rank inside(join(place.rank, place.ranks, place.name), RankMode::kProcess);
            try {
                make_calls(inside, std::make_unique<MpiRail>(place), calls);
            } catch (const std::exception& error) {
                inside.bootstrap().fail(error.what());
                throw;
            }
        } catch (const UsageError& error) {
            abort_all(error_text(error), kExitUsage);
        } catch (const std::exception& error) {
            abort_all(fmt::format("rank {} of machine {}: {}", place.rank, place.machine,
                                  error_text(error)),
                      kExitFailed);
        }
        return kExitRight;
    });
}
