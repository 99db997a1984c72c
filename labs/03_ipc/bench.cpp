// 03_ipc_bench: the time until ranks share memory, compared with NCCL. Each round times a
// new meeting of the ranks and a symmetric range; then the same with NCCL, if its library is found:
// connect_nccl(), and ncclMemAlloc with ncclCommWindowRegister.

#include <fmt/core.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/cli/cli.hpp"
#include "common/cuda/driver.hpp"
#include "common/nccl/nccl_communicator.hpp"
#include "common/nccl/turn_timer.hpp"
#include "common/sys/bytes.hpp"
#include "labs/03_ipc/symmetric_range.hpp"

namespace {

using namespace symm;

constexpr int kRounds = 3;

void print(const Rank& rank, const std::string& who, int round, double meet, double share) {
    rank.headline("{:<12} {:>5} {:>10.2f} {:>10.2f} {:>10.2f}", who, round, meet, share,
                  meet + share);
}

void time_ours(Rank& rank, std::size_t bytes, int round) {
    // A unique name: rank 0's process id, and the round.
    const std::string name = rank.bootstrap().allgather_text(
        "name", fmt::format("symm-setup-{}-{}", ::getpid(), round))[0];
    std::optional<Rank> again;
    std::optional<SymmetricRange> range;
    const double meet = time_together(rank, [&] {
        again.emplace(join(rank.rank(), rank.size(), name), rank.mode(), rank.device());
    });
    const double share = time_together(rank, [&] { range.emplace(*again, bytes); });
    print(rank, "this lab", round, meet, share);
}

void time_nccl(Rank& rank, const NcclLibrary& library, std::size_t bytes, int round) {
    std::unique_ptr<void, int (*)(void*)> memory(nullptr, library.mem_free);
    std::unique_ptr<NcclCommunicator> communicator;  // destroyed before the memory of its window
    const double meet = time_together(rank, [&] { communicator = connect_nccl(rank, library); });
    const double share = time_together(rank, [&] {
        void* pointer = nullptr;
        library.check(library.mem_alloc(&pointer, bytes), "ncclMemAlloc");
        memory.reset(pointer);
        communicator->register_window(reinterpret_cast<CUdeviceptr>(pointer), bytes);
    });
    print(rank, "NCCL " + library.version(), round, meet, share);
}

void time_set_up(Rank& rank, std::size_t bytes) {
    rank.headline("{}\n{} ranks, {} each, milliseconds of the slowest rank\n", describe_driver(),
                  rank.size(), format_bytes(bytes));
    rank.headline("{:<12} {:>5} {:>10} {:>10} {:>10}", "", "round", "meet", "share", "together");
    for (int round = 1; round <= kRounds; ++round) {
        time_ours(rank, bytes, round);
    }
    std::string why_not;
    const auto library = load_nccl(rank, why_not);
    for (int round = 1; round <= kRounds && library; ++round) {
        time_nccl(rank, *library, bytes, round);
    }
    if (!library) {
        rank.headline("NCCL comparison skipped: {}.", why_not);
    }
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Lab 03: the time until ranks share memory, compared with NCCL.", "03_ipc_bench");
    RankOptions ranks;
    std::size_t bytes = 64 << 20;
    add_rank_options(app, ranks);
    add_bytes_option(app, "--bytes", bytes, "Memory of each rank");
    return run_main(app, argc, argv, [&] {
        return run_ranks(ranks, [&](Rank& rank) { time_set_up(rank, bytes); });
    });
}
