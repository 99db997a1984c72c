// Lab 06 over the machines of an MPI run: mpirun starts one process per rank. Every element is
// checked against the reference, and against MPI's own AllReduce of all ranks if MPI supports the
// type and the operation.

#include <fmt/core.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/cli/cli.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/device.hpp"
#include "common/sys/bytes.hpp"
#include "common/sys/error_text.hpp"
#include "labs/06_allreduce/machines/machine_calls.hpp"
#include "labs/06_allreduce/machines/mpi_rail.hpp"

namespace {

using namespace symm;

/// Indexed by DataType or ReduceOp; null if MPI has no counterpart.
MPI_Datatype mpi_type(DataType type) {
    const std::array<MPI_Datatype, kDataTypes.size()> types{
        MPI_INT8_T,   MPI_UINT8_T,       MPI_INT32_T, MPI_UINT32_T, MPI_INT64_T,
        MPI_UINT64_T, MPI_DATATYPE_NULL, MPI_FLOAT,   MPI_DOUBLE,   MPI_DATATYPE_NULL};
    return types.at(static_cast<std::size_t>(type));
}

MPI_Op mpi_op(ReduceOp op) {
    const std::array<MPI_Op, kReduceOps.size()> ops{MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN,
                                                    MPI_OP_NULL};
    return ops.at(static_cast<std::size_t>(op));
}

/// Compares with MPI_Allreduce. With these inputs any order of additions gives the same bits.
void check_against_mpi(const Arithmetic& arithmetic, std::size_t count, CUdeviceptr in,
                       CUdeviceptr out) {
    const std::size_t bytes = count * size_of(arithmetic.type);
    std::vector<std::byte> expected(bytes);
    std::vector<std::byte> got(bytes);
    copy_to_host(expected.data(), in, bytes);
    copy_to_host(got.data(), out, bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(MPI_IN_PLACE, expected.data(), static_cast<int>(count),
                   mpi_type(arithmetic.type), mpi_op(arithmetic.op), MPI_COMM_WORLD, &request);
    wait_for_mpi(request, "MPI_Iallreduce");
    if (expected != got) {
        throw std::runtime_error("the result differs from MPI_Allreduce's");
    }
}

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
    MachineCalls calls{.factor = 4};
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
        if (mpi_type(calls.arithmetic.type) != MPI_DATATYPE_NULL &&
            mpi_op(calls.arithmetic.op) != MPI_OP_NULL) {
            calls.also_check = [&](std::size_t count, CUdeviceptr in, CUdeviceptr out) {
                check_against_mpi(calls.arithmetic, count, in, out);
            };
        }
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
