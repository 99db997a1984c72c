#include "all_reduce_rms_norm.hpp"

#include <algorithm>
#include <limits>
#include <symm/launch.hpp>

#include "all_reduce_rms_norm_kernel.hpp"
#include "long_rows_kernel.hpp"
#include "rms_norm_call.hpp"

namespace symm::collectives {
namespace {

using symm::refuse_unless;

static_assert(RowNorm<float>::kMostHidden == kMostHidden);

constexpr int kMostRanksOfManyThreads = 4;
constexpr unsigned kFewParts = 2048;       // 1 MiB
constexpr unsigned kMostParts = 3583;      // 1.75 MiB
constexpr unsigned kThreadsOfParts = 128;  // at least: few, as a block is one multiprocessor's

constexpr bool is_prime(unsigned number) {
    for (unsigned divisor = 2; divisor * divisor <= number; ++divisor) {
        if (number % divisor == 0) {
            return false;
        }
    }
    return true;
}
static_assert(is_prime(kMostParts));  // long_rows_kernel.hpp says why

/// Bytes of x in the mailbox, for each peer. Up to so many it is faster than one shot through
/// windows, up to half of them than two shots.
std::size_t room(int ranks) {
    return (std::size_t{4} << 20) / static_cast<unsigned>(ranks <= 2 ? 1 : ranks);
}

/// Calls `use.operator()<T, kMost, kPlain>()` for the type, the ranks and the kind of call.
template <class Use>
void with_kernel(symm::DataType type, int ranks, bool is_plain, const Use& use) {
    symm::with_type_and_ranks<symm::Types::kFloating>(type, ranks, [&]<class T, int kMost>() {
        if constexpr (kMost <= symm::kMaxRanksOnGpus && sizeof(T) <= sizeof(float)) {
            if (is_plain) {
                use.template operator()<T, kMost, true>();
            } else {
                use.template operator()<T, kMost, false>();
            }
        }
    });
}

/// Windows of long rows, for at most four ranks, have many threads.
template <class T, int kMost, bool kPlain>
using LongRowsInWindows =
    RmsNormWindows<T, kMost, kPlain, kMost <= kMostRanksOfManyThreads ? kManyThreads : kThreads>;

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
        for (const bool is_plain : {true, false}) {
            with_kernel(type, ranks, is_plain, [&]<class T, int kMost, bool kPlain>() {
                blocks = std::min({blocks, resident<RmsNormPacks<T, kMost, kPlain>>(threads),
                                   resident<RmsNormParts<T, kMost, kPlain>>(threads),
                                   resident<RmsNormWindows<T, kMost, kPlain>>(threads),
                                   resident<LongRowsInWindows<T, kMost, kPlain>>(threads)});
            });
        }
    }
    return blocks;
}

unsigned packs_of(const RmsNormRows& rows) {
    return static_cast<unsigned>(bytes_of_row(rows) / sizeof(Pack));
}

RmsNormParams params_of(const symm::OwnCollective& own, const RmsNormRows& rows) {
    return {own.call({{rows.type}, rows.x, rows.out, elements_of(rows)}),
            rows.residual,
            rows.weight,
            rows.rows,
            rows.hidden,
            rows.epsilon,
            rows.weight_offset,
            rows.bias,
            rows.out_scale,
            rows.float_weights};
}

/// Whether all rows at once fit into blocks of kThreads, but not into ones of more, each of which
/// takes the place of two.
bool only_few_fit(const RmsNormRows& rows, const symm::LaunchShape& most) {
    return rows.rows > most.blocks / 2 && rows.rows <= most.blocks;
}

/// Launches a kernel in which all threads of a block do a row: as many blocks as there are rows, if
/// they fit.
template <class Kernel>
void launch(const symm::OwnCollective& own, const RmsNormRows& rows, const Kernel& kernel,
            unsigned most_blocks, CUstream stream, bool by_mailbox = false) {
    const symm::LaunchShape& most = own.most();
    const unsigned packs = packs_of(rows);
    // In the mailbox all rows at once are faster.
    const bool many = Kernel::kMaxThreads > kThreads && packs > kThreads &&
                      most.threads == kThreads && most.blocks > 1 &&
                      !(by_mailbox && only_few_fit(rows, most));
    const unsigned most_threads = many ? Kernel::kMaxThreads : most.threads;
    const unsigned rounds = (packs + most_threads - 1) / most_threads;  // of equal sizes
    const unsigned threads = ((packs + rounds - 1) / rounds + 31) / 32 * 32;
    const unsigned blocks = std::min({rows.rows, most.blocks / (many ? 2 : 1), most_blocks});
    symm::launch(stream, blocks, threads, kernel, Kernel::shared_bytes(rows.hidden),
                 by_mailbox ? own.launch_order(blocks) : symm::LaunchOrder::kAfter);
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
    const symm::LaunchShape& most = own_.most();
    const unsigned lanes = rows.rows * parts_of_row * kLanes;
    // A warp of RmsNormParts keeps the sum of one part, and finds the others' in the residual.
    const bool has_place = rows.residual != 0 || lanes <= most.blocks * most.threads;
    // Then RmsNormPacks would have half of the threads.
    const bool few_fit = own_.ranks() <= 2 && packs > kThreads && only_few_fit(rows, most);
    const bool by_parts = packs * static_cast<unsigned>(own_.ranks() - 1) > kThreads &&
                          rows.rows * parts_of_row <= (few_fit ? kMostParts : kFewParts) &&
                          has_place;
    with_kernel(rows.type, own_.ranks(), is_plain(rows), [&]<class T, int kMost, bool kPlain>() {
        if (!by_parts) {
            return launch(own_, rows, RmsNormPacks<T, kMost, kPlain>{{call}}, rows.rows, stream,
                          true);
        }
        using Kernel = RmsNormParts<T, kMost, kPlain>;
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
    const auto check = [&] {
        require_possible(rows);
        const bool x = own_.is_in_window(rows.x, bytes_of(rows));
        refuse_unless(asked != RmsNormWay::kTwoShots || rows.residual != 0,
                      "RMSNorm by two shots needs a residual, which holds the ranks' sums");
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
            piece.residual += rows.residual == 0 ? 0 : bytes_of(piece);
            piece.out += bytes_of_out(piece);
        }
    };
    const auto by_windows = [&] {
        const RmsNormWindowsParams call{params_of(own_, rows), way == RmsNormWay::kTwoShots,
                                        own_.meeting(rows.x, rows.residual, bytes_of(rows)),
                                        own_.barrier()};
        with_kernel(rows.type, own_.ranks(), is_plain(rows),
                    [&]<class T, int kMost, bool kPlain>() {
                        const auto by = [&]<class Kernel>(const Kernel& kernel) {
                            launch(own_, rows, kernel, symm::kMaxBarrierBlocks, stream);
                        };
                        packs_of(rows) > kThreads ? by(LongRowsInWindows<T, kMost, kPlain>{call})
                                                  : by(RmsNormWindows<T, kMost, kPlain>{call});
                    });
    };
    own_.queue(text_of(rows, asked), stream, check,
               [&] { way == RmsNormWay::kPacks ? by_packs() : by_windows(); });
}

}  // namespace symm::collectives
