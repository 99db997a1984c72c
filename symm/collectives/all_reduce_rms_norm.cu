#include "all_reduce_rms_norm.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <symm/launch.hpp>

#include "all_reduce_rms_norm_kernel.hpp"
#include "long_rows_kernel.hpp"

namespace symm::collectives {
namespace {

using symm::refuse_unless;

constexpr unsigned kMostRows = 8192;
constexpr unsigned kLeastHidden = 512;
constexpr unsigned kMostHidden = 16384;
constexpr int kMostRanksOfManyThreads = 4;
constexpr unsigned kMostParts = 2053;      // 1 MiB; a prime: long_rows_kernel.hpp
constexpr unsigned kThreadsOfParts = 128;  // at least: few, as a block is one multiprocessor's

/// Bytes of x in the mailbox, for each peer. Up to so many it is faster than one shot through
/// windows, up to half of them than two shots.
std::size_t room(int ranks) {
    return (std::size_t{4} << 20) / static_cast<unsigned>(ranks <= 2 ? 1 : ranks);
}

/// Calls `use.operator()<T, kMost>()` for the type and the ranks.
template <class Use>
void with_kernel(symm::DataType type, int ranks, const Use& use) {
    symm::with_type_and_ranks<symm::Types::kFloating>(type, ranks, [&]<class T, int kMost>() {
        if constexpr (kMost <= symm::kMaxRanksOnGpus && sizeof(T) <= sizeof(float)) {
            use.template operator()<T, kMost>();
        }
    });
}

/// Windows of long rows, for at most four ranks, have many threads.
template <class T, int kMost>
using LongRowsInWindows =
    RmsNormWindows<T, kMost, kMost <= kMostRanksOfManyThreads ? kManyThreads : kThreads>;

/// Blocks that a device keeps resident. One of more than kThreads takes the place of two.
template <class Kernel>
unsigned resident(unsigned threads) {
    constexpr unsigned kPlaces = Kernel::kMaxThreads / kThreads;
    return kPlaces *
           symm::resident_blocks<Kernel>(kPlaces * threads, Kernel::shared_bytes(kMostHidden));
}

/// The fewest of all kernels.
unsigned resident(int ranks, unsigned threads) {
    unsigned blocks = std::numeric_limits<unsigned>::max();
    for (const symm::DataType type :
         {symm::DataType::kFloat, symm::DataType::kHalf, symm::DataType::kBfloat16}) {
        with_kernel(type, ranks, [&]<class T, int kMost>() {
            blocks = std::min({blocks, resident<RmsNormPacks<T, kMost>>(threads),
                               resident<RmsNormParts<T, kMost>>(threads),
                               resident<RmsNormWindows<T, kMost>>(threads),
                               resident<LongRowsInWindows<T, kMost>>(threads)});
        });
    }
    return blocks;
}

std::size_t bytes_of_row(const RmsNormRows& rows) {
    return rows.hidden * symm::size_of(rows.type);
}
std::size_t bytes_of(const RmsNormRows& rows) {
    return rows.rows * bytes_of_row(rows);
}

void require_possible(const RmsNormRows& rows) {
    refuse_unless(rows.type == symm::DataType::kFloat || rows.type == symm::DataType::kHalf ||
                      rows.type == symm::DataType::kBfloat16,
                  "RMSNorm takes float, half and bfloat16, not {}", symm::name_of(rows.type));
    refuse_unless(rows.rows >= 1 && rows.rows <= kMostRows, "RMSNorm takes 1 to {} rows, not {}",
                  kMostRows, rows.rows);
    refuse_unless(rows.hidden >= kLeastHidden && rows.hidden <= kMostHidden &&
                      bytes_of_row(rows) % sizeof(Pack) == 0,
                  "a row of RMSNorm has {} to {} elements, in whole {} bytes, not {} {}",
                  kLeastHidden, kMostHidden, sizeof(Pack), rows.hidden, symm::name_of(rows.type));
    refuse_unless(rows.epsilon >= 0, "RMSNorm's epsilon is at least 0, not {}", rows.epsilon);
    struct Named {
        const char* name;
        CUdeviceptr begin;
        std::size_t bytes;
    };
    const Named all[] = {{"x", rows.x, bytes_of(rows)},
                         {"residual", rows.residual, bytes_of(rows)},
                         {"out", rows.out, bytes_of(rows)},
                         {"weight", rows.weight, bytes_of_row(rows)}};
    for (const Named& one : all) {
        refuse_unless(one.begin != 0 && one.begin % sizeof(Pack) == 0,
                      "RMSNorm's {} is at {:#x}: it has to begin at a multiple of {} bytes",
                      one.name, one.begin, sizeof(Pack));
        for (const Named& other : all) {
            refuse_unless(
                &other == &one || other.begin < one.begin || other.begin - one.begin >= one.bytes,
                "RMSNorm's {} and {} overlap", one.name, other.name);
        }
    }
}

unsigned packs_of(const RmsNormRows& rows) {
    return static_cast<unsigned>(bytes_of_row(rows) / sizeof(Pack));
}

RmsNormParams params_of(const symm::OwnCollective& own, const RmsNormRows& rows) {
    return {own.call({{rows.type}, rows.x, rows.out, std::size_t{rows.rows} * rows.hidden}),
            rows.residual,
            rows.weight,
            rows.rows,
            rows.hidden,
            rows.epsilon};
}

/// Launches a kernel in which all threads of a block do a row: as many blocks as there are rows, if
/// they fit.
template <class Kernel>
void launch(const symm::OwnCollective& own, const RmsNormRows& rows, const Kernel& kernel,
            unsigned most_blocks, CUstream stream, bool may_overlap = false) {
    const symm::LaunchShape& most = own.most();
    const unsigned packs = packs_of(rows);
    const bool many = Kernel::kMaxThreads > kThreads && packs > kThreads &&
                      most.threads == kThreads && most.blocks > 1;
    const unsigned threads =
        std::min((packs + 31) / 32 * 32, many ? Kernel::kMaxThreads : most.threads);
    const unsigned blocks = std::min({rows.rows, most.blocks / (many ? 2 : 1), most_blocks});
    symm::launch(stream, blocks, threads, kernel, Kernel::shared_bytes(rows.hidden),
                 may_overlap ? own.launch_order(blocks) : symm::LaunchOrder::kAfter);
}

}  // namespace

AllReduceRmsNorm::AllReduceRmsNorm(symm::Communicator& communicator)
    : own_(communicator,
           {.slots_per_peer = static_cast<unsigned>(room(communicator.ranks()) / sizeof(Pack)),
            .has_sentinel = true,
            .threads = kThreads,
            .resident = [&](unsigned threads) { return resident(communicator.ranks(), threads); }}),
      squares_(communicator
                   .add_memory(kMostParts * sizeof(symm::Packet),
                               [](CUdeviceptr memory) {
                                   symm::zero(memory, kMostParts * sizeof(symm::Packet));
                               })
                   .local()) {}

void AllReduceRmsNorm::launch_packs(const RmsNormRows& rows, CUstream stream) const {
    const RmsNormParams call = params_of(own_, rows);
    const unsigned packs = packs_of(rows);
    constexpr unsigned kLanes = symm::simt::kWarpSize;
    const unsigned parts_of_row = (packs + kLanes - 1) / kLanes;
    with_kernel(rows.type, own_.ranks(), [&]<class T, int kMost>() {
        if (packs * static_cast<unsigned>(own_.ranks() - 1) <= kThreads ||
            rows.rows * parts_of_row > kMostParts) {
            return launch(own_, rows, RmsNormPacks<T, kMost>{{call}}, rows.rows, stream, true);
        }
        using Kernel = RmsNormParts<T, kMost>;
        const symm::LaunchShape& most = own_.most();
        const unsigned lanes = rows.rows * parts_of_row * kLanes;
        const unsigned threads = std::min(
            most.threads,
            std::max(kThreadsOfParts, (lanes / most.blocks + kLanes - 1) / kLanes * kLanes));
        const unsigned blocks = std::min(most.blocks, (lanes + threads - 1) / threads);
        auto* const squares = reinterpret_cast<symm::Packet*>(squares_);
        symm::launch(stream, blocks, threads, Kernel{{{call}}, squares, kMostParts, parts_of_row},
                     0, own_.launch_order(blocks));
    });
}

void AllReduceRmsNorm::operator()(const RmsNormRows& rows, CUstream stream,
                                  RmsNormWay asked) const {
    RmsNormWay way = asked;
    const std::string text =
        fmt::format("AllReduce and RMSNorm of {} x {} {}, epsilon {}, by {}", rows.rows,
                    rows.hidden, symm::name_of(rows.type), rows.epsilon, symm::name_of(asked));
    const auto check = [&] {
        require_possible(rows);
        const bool x = own_.is_in_window(rows.x, bytes_of(rows));
        const bool both = x && own_.is_in_window(rows.residual, bytes_of(rows));
        refuse_unless(asked != RmsNormWay::kOneShot || x,
                      "RMSNorm by one shot needs x in a window");
        refuse_unless(asked != RmsNormWay::kTwoShots || both,
                      "RMSNorm by two shots needs x and residual in windows");
        if (asked == RmsNormWay::kAuto) {
            const bool by_two_shots = own_.ranks() > 2 && both;
            const std::size_t most = room(own_.ranks()) / (by_two_shots ? 2 : 1);
            way = bytes_of(rows) <= most || !x ? RmsNormWay::kPacks
                  : by_two_shots               ? RmsNormWay::kTwoShots
                                               : RmsNormWay::kOneShot;
        }
    };
    const auto by_packs = [&] {
        const auto at_once = static_cast<unsigned>(room(own_.ranks()) / bytes_of_row(rows));
        RmsNormRows piece = rows;
        for (unsigned left = rows.rows; left > 0; left -= piece.rows) {
            piece.rows = std::min(at_once, left);
            launch_packs(piece, stream);
            piece.x += bytes_of(piece);
            piece.residual += bytes_of(piece);
            piece.out += bytes_of(piece);
        }
    };
    const auto by_windows = [&] {
        const RmsNormWindowsParams call{params_of(own_, rows), way == RmsNormWay::kTwoShots,
                                        own_.meeting(rows.x, rows.residual, bytes_of(rows)),
                                        own_.barrier()};
        with_kernel(rows.type, own_.ranks(), [&]<class T, int kMost>() {
            if (packs_of(rows) > kThreads) {
                launch(own_, rows, LongRowsInWindows<T, kMost>{call}, symm::kMaxBarrierBlocks,
                       stream);
            } else {
                launch(own_, rows, RmsNormWindows<T, kMost>{call}, symm::kMaxBarrierBlocks, stream);
            }
        });
    };
    own_.queue(text, stream, check, [&] { way == RmsNormWay::kPacks ? by_packs() : by_windows(); });
}

}  // namespace symm::collectives
