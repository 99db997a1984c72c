#include "symm/nodes/node_calls.hpp"

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>

#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/usage_error.hpp"
#include "labs/06_allreduce/communicator/memory_budget.hpp"
#include "symm/nodes/exchange.hpp"
#include "symm/nodes/hierarchical_communicator.hpp"
#include "symm/nodes/thread_rail.hpp"

namespace symm {
namespace {

/// If ranks of several machines share a device, their kernels must fit on it together.
constexpr unsigned kBlocksOfSharedDevice = 8;

}  // namespace

void make_calls(Rank& inside, std::unique_ptr<Rail> rail, const NodeCalls& calls) {
    const auto [type, op, collective, root] = calls.arithmetic;
    const int machine = rail->machine();
    const int machines = rail->machines();
    const int ranks = machines * inside.size();
    const auto print = [&](const std::string& line) {
        if (machine == 0) {
            inside.headline("{}", line);
        }
    };
    Verifier verifier(machine * inside.size() + inside.rank(), ranks);
    const Stream stream;
    require_memory(inside, calls.sizes.last, "--bytes");
    const bool shared = ranks > device_count();
    Exchange exchange(inside, std::move(rail));
    HierarchicalCommunicator communicator(
        inside, exchange,
        {.limit = Deadline::standard_limit(), .max_blocks = shared ? kBlocksOfSharedDevice : 0});
    const CUdeviceptr in = communicator.inside().allocate(calls.sizes.last);
    const CUdeviceptr out = calls.in_place ? in : communicator.inside().allocate(calls.sizes.last);

    print(fmt::format("{}\nAllReduce, {} machines of {} ranks, {}, {}, {}\n\n", describe_driver(),
                      machines, inside.size(), name_of(type), name_of(op),
                      calls.in_place ? "in place" : "out of place"));
    print(fmt::format("{:>8} {:>12} {:>10}   result\n", "bytes", "count", "us"));
    for (std::size_t bytes = calls.sizes.first; bytes <= calls.sizes.last; bytes *= calls.factor) {
        const std::size_t count = bytes / size_of(type);
        std::chrono::duration<double, std::micro> time{};
        for (int i = 0; i <= calls.iterations; ++i) {
            if (in != out) {
                Verifier::poison(stream, out, bytes);
            }
            verifier.fill(stream, calls.arithmetic, in, count);
            communicator.synchronize(stream, "the input");
            const auto start = std::chrono::steady_clock::now();
            communicator.all_reduce(in, out, count, type, op, stream.get());
            communicator.synchronize(stream, "the AllReduce");
            if (i != 0) {  // the first one warms up
                time += std::chrono::steady_clock::now() - start;
            }
            inside.bootstrap().together(
                "result", [&] { verifier.check(stream, calls.arithmetic, out, count); });
        }
        // Emulated times mean nothing.
        const std::string us =
            is_emulated() ? "(emulated)" : fmt::format("{:.0f}", time.count() / calls.iterations);
        print(fmt::format("{:>8} {:>12} {:>10}   right\n", format_bytes(bytes), count, us));
    }
    print("\nAll results are right.\n");
    if (!is_emulated()) {
        print("A time is that of one call on one rank, including its wait.\n");
    }
    inside.require_printed();
}

int run_thread_nodes(int machines, int ranks, const NodeCalls& calls) {
    if (ranks % machines != 0) {
        throw UsageError(
            "--ranks {} is not a multiple of --nodes {}: all machines need the same number of "
            "ranks",
            ranks, machines);
    }
    // Ranks that share a GPU have many streams. A stream must not wait for another stream's kernel
    // just because they share a hardware queue. CUDA reads this variable when it starts.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    return run_on_nodes(machines, ranks / machines, [&](Rank& inside, std::unique_ptr<Rail> rail) {
        make_calls(inside, std::move(rail), calls);
    });
}

}  // namespace symm
