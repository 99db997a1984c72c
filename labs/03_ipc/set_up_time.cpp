#include "labs/03_ipc/set_up_time.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/cli/bytes.hpp"
#include "common/cli/table.hpp"
#include "common/cuda/driver.hpp"
#include "common/nccl/nccl_communicator.hpp"
#include "labs/03_ipc/symmetric_range.hpp"

namespace symm {
namespace {

// Milliseconds that a step takes on the slowest rank.
template <class Step>
double slowest(Rank& rank, const Step& step) {
    const auto start = std::chrono::steady_clock::now();
    step();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    const auto all = rank.bootstrap().allgather("time", took.count());
    return *std::max_element(all.begin(), all.end());
}

struct Steps {
    double meet;   // until the ranks have a bootstrap, or NCCL's communicator
    double share;  // until memory is created, exchanged and mapped
};

Steps time_ours(Rank& rank, std::size_t bytes, int round) {
    // A name that no other run has: rank 0's process, and the round.
    const std::string name = rank.bootstrap().allgather_text(
        "name", fmt::format("symm-setup-{}-{}", ::getpid(), round))[0];
    std::optional<Rank> again;
    std::optional<SymmetricRange> range;
    return {slowest(rank,
                    [&] {
                        again.emplace(join(rank.rank(), rank.size(), name), rank.mode(),
                                      rank.device());
                    }),
            slowest(rank, [&] { range.emplace(*again, bytes); })};
}

Steps time_nccl(Rank& rank, const NcclLibrary& library, std::size_t bytes) {
    const auto id = rank.bootstrap().allgather("NCCL id", rank.rank() == 0
                                                              ? NcclCommunicator::unique_id(library)
                                                              : NcclLibrary::UniqueId{})[0];
    std::optional<NcclCommunicator> communicator;
    std::unique_ptr<void, int (*)(void*)> memory(nullptr, library.mem_free);
    const double meet =
        slowest(rank, [&] { communicator.emplace(library, id, rank.size(), rank.rank()); });
    const double share = slowest(rank, [&] {
        void* pointer = nullptr;
        library.check(library.mem_alloc(&pointer, bytes), "ncclMemAlloc");
        memory.reset(pointer);
        communicator->register_window(reinterpret_cast<CUdeviceptr>(pointer), bytes);
    });
    communicator.reset();  // before the memory of its window
    return {meet, share};
}

// NCCL's library where all ranks can use it; else null, with the reason in `why_not`.
std::unique_ptr<NcclLibrary> load_nccl(Rank& rank, std::string& why_not) {
    std::unique_ptr<NcclLibrary> library;
    if (is_emulated()) {
        why_not = "the driver is emulated";
    } else if (rank.size() > device_count()) {
        why_not = "NCCL needs a GPU for each rank";
    } else {
        library = NcclLibrary::load(why_not);
    }
    if (library && (library->window_register == nullptr || library->mem_alloc == nullptr)) {
        why_not = "NCCL " + library->version() + " has no windows";
    }
    // All ranks or none: the others would wait for this one in ncclCommInitRank.
    for (const std::string& reason : rank.bootstrap().allgather_text("NCCL", why_not)) {
        why_not = why_not.empty() ? reason : why_not;
    }
    return why_not.empty() ? std::move(library) : nullptr;
}

}  // namespace

void time_set_up(Rank& rank, std::size_t bytes, int rounds) {
    Table table({"set-up", "ranks", "bytes", "meet (ms)", "share (ms)", "together (ms)"});
    const auto add = [&](const std::string& name, int round, const Steps& steps) {
        table.add({fmt::format("{}, round {}", name, round + 1), std::to_string(rank.size()),
                   format_bytes(bytes), fmt::format("{:.2f}", steps.meet),
                   fmt::format("{:.2f}", steps.share),
                   fmt::format("{:.2f}", steps.meet + steps.share)});
        return steps.meet + steps.share;
    };
    double ours = 0;
    double nccl = 0;
    for (int round = 0; round < rounds; ++round) {
        ours += add("ours", round, time_ours(rank, bytes, round));
    }
    std::string why_not;
    const auto library = load_nccl(rank, why_not);
    for (int round = 0; round < rounds && library; ++round) {
        nccl += add("NCCL " + library->version(), round, time_nccl(rank, *library, bytes));
    }
    rank.headline(
        "{}{}", table.text(),
        library ? fmt::format("NCCL takes {:.1f} times as long (all rounds together).", nccl / ours)
                : "NCCL comparison skipped: " + why_not);
    if (is_emulated()) {
        rank.headline("The driver is emulated: these times say nothing about a GPU.");
    }
}

}  // namespace symm
