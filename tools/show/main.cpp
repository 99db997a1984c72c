// Makes an AllReduce of floats on emulated GPUs, and prints what was recorded of it. show.py
// draws it.

#include <fmt/ranges.h>

#include <cstdlib>

#include "common/cli/cli.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/06_allreduce/algorithms/chunks/chunks.hpp"
#include "labs/06_allreduce/algorithms/copy/copy.hpp"
#include "labs/06_allreduce/algorithms/kernels.hpp"
#include "labs/06_allreduce/algorithms/mailbox/mailbox.hpp"
#include "tools/json_string.hpp"
#include "tools/show/recorder.hpp"

namespace {

using namespace symm;

struct Options {
    int ranks = 4;
    std::size_t bytes = 64;
    Algorithm algorithm = Algorithm::kOneShot;
};

constexpr int kMostRanks = 8;

/// Any sum of such numbers shows its ranks, in its last eight bits, and its element: their number
/// divides the rest.
float input(int rank, std::size_t i) {
    return static_cast<float>((std::size_t{1} << rank) + 256 * i);
}

CUdeviceptr address_of(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

/// The algorithm's mailbox on a rank: all its slots.
void add_mailbox(std::vector<show::Place>& places, const Workspace& workspace,
                 const AlgorithmRow& row, int rank) {
    const int ranks = workspace.rank.size();
    const bool twice = row.algorithm == Algorithm::kPush;
    const int banks = static_cast<int>(Mailbox::kBanks) * (twice ? 2 : 1);
    const std::size_t begin = round_up(sizeof(Epochs), kCacheLine);
    const std::size_t bytes =
        (row.kernels->memory(ranks) - begin) / static_cast<std::size_t>(banks * (ranks - 1));
    CUdeviceptr at = address_of(workspace.at<Epochs>(row.algorithm).of(rank)) + begin;
    for (int bank = 0; bank < banks; ++bank) {
        const char* const shot = !twice ? "" : bank % 2 == 0 ? "scatter " : "gather ";
        for (int sender = 0; sender < ranks; ++sender) {
            if (sender != rank) {
                places.push_back({fmt::format("{}slots of bank {}", shot, bank / (twice ? 2 : 1)),
                                  rank, at, bytes, sender});
                at += bytes;
            }
        }
    }
}

/// All that peers may use of a rank's memory.
void add_places(std::vector<show::Place>& places, const Workspace& workspace,
                const AlgorithmRow& row, int rank) {
    const auto add_flags = [&](const char* name, const auto& flags) {
        places.push_back({name, rank, address_of(&flags), sizeof(flags)});
    };
    add_flags("barrier flags", workspace.barrier().peer(rank)->inbox);
    add_flags("addresses", workspace.at<RendezvousMemory>(Algorithm::kTwoShot).of(rank)->inbox);
    const ChunksMemory& chunks = *workspace.at<ChunksMemory>(Algorithm::kChunks).of(rank);
    add_flags("chunk flags", chunks.sent);
    add_flags("turns", chunks.turns);
    add_flags("input flags", workspace.at<CopyMemory>(Algorithm::kCopy).of(rank)->inputs);
    add_flags("sum flags", workspace.at<CopyMemory>(Algorithm::kCopy).of(rank)->sums);
    if (workspace.slots != nullptr) {
        add_flags("gave-up flags", *workspace.slots->trust().memory.of(rank));
        for (int sender = 0; sender < workspace.rank.size(); ++sender) {
            for (const auto& [name, slots] : {std::pair("input slots", &workspace.slots->inputs()),
                                              std::pair("sum slots", &workspace.slots->sums())}) {
                if (sender != rank) {
                    places.push_back({name, rank, address_of(slots->of(rank, sender)),
                                      slots->packs * sizeof(simt::Pack16), sender});
                }
            }
        }
    }
    if (!row.needs.windows && row.algorithm != Algorithm::kCopy) {
        add_mailbox(places, workspace, row, rank);
    }
    places.push_back({"other memory", rank, address_of(workspace.at<BarrierMemory>({}).of(rank)),
                      Workspace::bytes(workspace.rank.size())});
}

void run(Rank& rank, const Options& options) {
    const AlgorithmRow& row = *find_row(Collective::kAllReduce, options.algorithm);
    const std::size_t count = options.bytes / sizeof(float);
    Workspace workspace(rank);
    if (row.kernels->prepare != nullptr) {
        row.kernels->prepare(workspace);
    }
    const SymmetricRange in(rank, options.bytes), out(rank, options.bytes);
    const Stream stream;
    KernelTimeout timeout;
    std::vector<float> numbers(count);
    for (std::size_t i = 0; i < count; ++i) {
        numbers[i] = input(rank.rank(), i);
    }
    copy_to_device(in.local(), numbers.data(), options.bytes);
    QueuedCall call{
        {{Reduction(ReduceOp::kSum, rank.size()), timeout.timeout(), rank.rank(), rank.size()},
         {{}, in.local(), out.local(), count}},
        stream.get(),
        row.cost.shape(count / kPerPack<float, simt::Pack16>, {1, 256}),
        LaunchOrder::kAfter,
        count,
        true,
        {}};
    std::fill_n(call.seen, rank.size(), Buffers{in.local(), out.local()});  // threads: one range
    const auto run_call = [&] {
        row.kernels->queue(workspace, call);
        timeout.synchronize(stream, "the call",
                            [&] { rank.bootstrap().throw_async_error("the call"); });
        rank.bootstrap().barrier("the call");
    };
    run_call();  // the first one finds memory that no call has used
    zero(out.local(), options.bytes);
    show::set_rank(rank.rank());
    std::vector<show::Place> places;
    if (rank.rank() == 0) {
        for (int p = 0; p < rank.size(); ++p) {
            places.push_back({"in", p, in.peer(p), options.bytes});
            places.push_back({"out", p, out.peer(p), options.bytes});
            add_places(places, workspace, row, p);
        }
        show::start_recording(places);
    }
    rank.bootstrap().barrier("recording");
    run_call();
    if (rank.rank() == 0) {
        std::vector<std::string> lines;
        for (const show::Place& place : places) {
            lines.push_back(
                fmt::format("[{}, {}, {}]", json_string(place.name), place.rank, place.sender));
        }
        rank.headline("{{\"elements\": {}, \"places\": [{}],\n\"entries\": {}}}\n", count,
                      fmt::format("{}", fmt::join(lines, ", ")), show::end_recording());
    }
    rank.bootstrap().barrier("end");
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Records an AllReduce of floats: see 06_allreduce --show.", "06_allreduce_record");
    Options options;
    add_number_option(app, "--ranks", options.ranks, 2, kMostRanks, "Ranks; each is a thread");
    add_bytes_option(app, "--bytes", options.bytes, "Size of a buffer, from 16 to 256");
    add_choice(app, "--algo", options.algorithm,
               "Algorithm: " + alternatives(Collective::kAllReduce));
    ::setenv("SYMM_EMU_DEVICES", std::to_string(kMostRanks).c_str(), 1);  // one for each rank
    ::setenv("SYMM_DRIVER", "emulated", 1);
    return run_main(app, argc, argv, [&] {
        if (options.bytes < 16 || options.bytes > 256 || options.bytes % sizeof(float) != 0) {
            throw UsageError("--bytes {}: give a multiple of 4 from 16 to 256", options.bytes);
        }
        if (find_row(Collective::kAllReduce, options.algorithm) == nullptr) {
            throw UsageError("--algo {}: give {}", name_of(options.algorithm),
                             alternatives(Collective::kAllReduce));
        }
        if (options.algorithm == Algorithm::kMulticast) {
            throw UsageError("--algo multicast: only trips from rank to rank are drawn");
        }
        return run_ranks({.ranks = options.ranks, .mode = RankMode::kThread},
                         [&](Rank& rank) { run(rank, options); });
    });
}
