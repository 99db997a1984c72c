#include "labs/03_ipc/set_up_time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "common/cli/bytes.hpp"
#include "common/cli/table.hpp"
#include "common/cuda/driver.hpp"
#include "common/nccl/nccl_communicator.hpp"
#include "common/sys/directory.hpp"
#include "labs/03_ipc/symmetric_range.hpp"

namespace symm {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// The slowest rank's time.
double slowest(Rank& rank, double mine) {
    const auto all = rank.bootstrap().allgather("time", mine);
    return *std::max_element(all.begin(), all.end());
}

struct Steps {
    double meet = 0;   // rendezvous, or communicator
    double share = 0;  // memory made, exchanged, mapped
};

Steps time_ours(Rank& rank, std::size_t bytes, int round) {
    std::unique_ptr<PrivateDirectory> directory;
    if (rank.rank() == 0) {
        directory = std::make_unique<PrivateDirectory>("symm-setup-");
    }
    const std::string path = rank.bootstrap().allgather_text(
        "directory", directory ? directory->path().string() : "")[0];
    Steps steps;
    auto start = Clock::now();
    Rank again(
        Bootstrap::join({rank.rank(), rank.size(), path, static_cast<std::uint64_t>(round) + 1}),
        rank.mode());
    steps.meet = slowest(rank, ms_since(start));
    start = Clock::now();
    const SymmetricRange range(again, bytes);
    steps.share = slowest(rank, ms_since(start));
    return steps;
}

Steps time_nccl(Rank& rank, const NcclLibrary& library, std::size_t bytes) {
    const auto id = rank.bootstrap().allgather("NCCL id", rank.rank() == 0
                                                              ? NcclCommunicator::unique_id(library)
                                                              : NcclLibrary::UniqueId{})[0];
    Steps steps;
    auto start = Clock::now();
    NcclCommunicator communicator(library, id, rank.size(), rank.rank());
    steps.meet = slowest(rank, ms_since(start));
    start = Clock::now();
    void* memory = nullptr;
    library.check(library.mem_alloc(&memory, bytes), "ncclMemAlloc");
    const std::unique_ptr<void, int (*)(void*)> owner(memory, library.mem_free);
    communicator.register_window(reinterpret_cast<CUdeviceptr>(memory), bytes);
    steps.share = slowest(rank, ms_since(start));
    return steps;
}

// Why NCCL cannot be timed here; empty where it can.
std::string nccl_reason(const Rank& rank, const NcclLibrary* library, const std::string& why_not) {
    if (is_emulated()) {
        return "the driver is emulated";
    }
    if (rank.size() > device_count()) {
        return "NCCL wants a GPU for each rank";
    }
    if (library == nullptr) {
        return why_not;
    }
    return library->window_register == nullptr || library->mem_alloc == nullptr
               ? "NCCL " + library->version() + " has no windows"
               : "";
}

}  // namespace

void time_set_up(Rank& rank, std::size_t bytes, int rounds) {
    Table table({"set-up", "ranks", "bytes", "meet (ms)", "share (ms)", "together (ms)"});
    const auto add = [&](const std::string& name, const Steps& steps) {
        table.add({name, std::to_string(rank.size()), format_bytes(bytes),
                   fmt::format("{:.2f}", steps.meet), fmt::format("{:.2f}", steps.share),
                   fmt::format("{:.2f}", steps.meet + steps.share)});
        return steps.meet + steps.share;
    };
    double ours = 0;
    double theirs = 0;
    for (int round = 0; round < rounds; ++round) {
        ours += add(fmt::format("ours, round {}", round + 1), time_ours(rank, bytes, round));
    }
    std::string why_not;
    const auto library = is_emulated() ? nullptr : NcclLibrary::load(why_not);
    why_not = nccl_reason(rank, library.get(), why_not);
    // One rank without the library would leave the others waiting in ncclCommInitRank.
    for (const std::string& reason : rank.bootstrap().allgather_text("NCCL", why_not)) {
        why_not = why_not.empty() ? reason : why_not;
    }
    if (why_not.empty()) {
        for (int round = 0; round < rounds; ++round) {
            theirs += add(fmt::format("NCCL {}, round {}", library->version(), round + 1),
                          time_nccl(rank, *library, bytes));
        }
    }
    rank.headline("{}", table.text());
    if (why_not.empty()) {
        rank.headline("NCCL takes {:.1f} times as long (all rounds together).", theirs / ours);
    } else {
        rank.headline("NCCL is not timed: {}", why_not);
    }
    if (is_emulated()) {
        rank.headline("These are times of the emulated driver: they say nothing about a GPU.");
    }
}

}  // namespace symm
