#include "all_reduce_rms_norm.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <symm/launch.hpp>
#include <type_traits>

#include "all_reduce_rms_norm_kernel.hpp"

namespace your_own {
namespace {

constexpr int kMostRanksOfLongRows = 4;

/// Bytes of x in the mailbox, for each peer. Up to so many, it is faster than windows.
std::size_t room(int ranks) {
    return (std::size_t{4} << 20) / static_cast<unsigned>(std::max(ranks, 2));
}

/// Calls `use.operator()<T, kMost, kMostThreads>()` for the type and the ranks.
template <class Use>
void with_kernel(symm::DataType type, int ranks, bool long_rows, const Use& use) {
    symm::with_type_and_ranks<symm::Types::kFloating>(type, ranks, [&]<class T, int kMost>() {
        if constexpr (kMost <= symm::kMaxRanksOnGpus && sizeof(T) <= sizeof(float)) {
            if constexpr (kMost <= kMostRanksOfLongRows) {
                if (long_rows) {
                    return use.template operator()<T, kMost, kThreadsOfLongRows>();
                }
            }
            use.template operator()<T, kMost, kThreads>();
        }
    });
}

/// A block's shared memory: for a row, and for the ranks' addresses.
template <class T, int kMost>
unsigned shared_bytes(unsigned hidden) {
    return RowNorm<T>::shared_bytes(hidden) + kMost * sizeof(symm::Buffers);
}

/// A block of a long row takes the place of two.
unsigned resident(int ranks, unsigned threads) {
    unsigned blocks = std::numeric_limits<unsigned>::max();
    for (const bool long_rows : {false, true}) {
        for (const symm::DataType type :
             {symm::DataType::kFloat, symm::DataType::kHalf, symm::DataType::kBfloat16}) {
            with_kernel(type, ranks, long_rows, [&]<class T, int kMost, unsigned kMostThreads>() {
                constexpr unsigned kPlaces = kMostThreads / kThreads;
                const unsigned shared = shared_bytes<T, kMost>(AllReduceRmsNorm::kMostHidden);
                blocks = std::min(
                    {blocks,
                     kPlaces * symm::resident_blocks<RmsNormPacks<T, kMost, kMostThreads>>(
                                   kPlaces * threads, shared),
                     kPlaces * symm::resident_blocks<RmsNormWindows<T, kMost, kMostThreads>>(
                                   kPlaces * threads, shared)});
            });
        }
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
    if (rows.type != symm::DataType::kFloat && rows.type != symm::DataType::kHalf &&
        rows.type != symm::DataType::kBfloat16) {
        throw std::invalid_argument(fmt::format("RMSNorm takes float, half and bfloat16, not {}",
                                                symm::name_of(rows.type)));
    }
    if (rows.rows == 0 || rows.rows > AllReduceRmsNorm::kMostRows) {
        throw std::invalid_argument(fmt::format("RMSNorm takes 1 to {} rows, not {}",
                                                AllReduceRmsNorm::kMostRows, rows.rows));
    }
    if (rows.hidden < AllReduceRmsNorm::kLeastHidden ||
        rows.hidden > AllReduceRmsNorm::kMostHidden || bytes_of_row(rows) % sizeof(Pack) != 0) {
        throw std::invalid_argument(
            fmt::format("a row of RMSNorm has {} to {} elements, in whole {} bytes, not {} {}",
                        AllReduceRmsNorm::kLeastHidden, AllReduceRmsNorm::kMostHidden, sizeof(Pack),
                        rows.hidden, symm::name_of(rows.type)));
    }
    if (!(rows.epsilon >= 0)) {
        throw std::invalid_argument(
            fmt::format("RMSNorm's epsilon is at least 0, not {}", rows.epsilon));
    }
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
        if (one.begin == 0 || one.begin % sizeof(Pack) != 0) {
            throw std::invalid_argument(
                fmt::format("RMSNorm's {} is at {:#x}: it has to begin at a multiple of {} bytes",
                            one.name, one.begin, sizeof(Pack)));
        }
        for (const Named& other : all) {
            if (&other != &one && other.begin >= one.begin && other.begin - one.begin < one.bytes) {
                throw std::invalid_argument(
                    fmt::format("RMSNorm's {} and {} overlap", one.name, other.name));
            }
        }
    }
}

unsigned packs_of_row(const RmsNormRows& rows) {
    return static_cast<unsigned>(bytes_of_row(rows) / sizeof(Pack));
}

bool has_long_rows(const RmsNormRows& rows, const symm::OwnCollective& own) {
    return packs_of_row(rows) > kThreads && own.ranks() <= kMostRanksOfLongRows &&
           own.most().threads == kThreads && own.most().blocks > 1;
}

/// All threads of a block do a row, and as many blocks as there are rows run, if they fit.
symm::LaunchShape shape_of(const RmsNormRows& rows, const symm::OwnCollective& own,
                           unsigned most_blocks) {
    const unsigned places = has_long_rows(rows, own) ? kThreadsOfLongRows / kThreads : 1;
    return {std::min({rows.rows, own.most().blocks / places, most_blocks}),
            std::min((packs_of_row(rows) + 31) / 32 * 32, own.most().threads * places)};
}

}  // namespace

AllReduceRmsNorm::AllReduceRmsNorm(symm::Communicator& communicator)
    : own_(
          communicator,
          {.slots_per_peer = static_cast<unsigned>(room(communicator.ranks()) / sizeof(Pack)),
           .has_sentinel = true,
           .threads = kThreads,
           .resident = [&](unsigned threads) { return resident(communicator.ranks(), threads); }}) {
}

RmsNormWay AllReduceRmsNorm::way_of(const RmsNormRows& rows, RmsNormWay asked) const {
    const std::size_t bytes = bytes_of(rows);
    const bool x = own_.is_in_window(rows.x, bytes);
    const bool both = x && own_.is_in_window(rows.residual, bytes);
    if (asked == RmsNormWay::kAuto) {
        return bytes <= room(own_.ranks()) || !x ? RmsNormWay::kPacks
               : own_.ranks() > 2 && both        ? RmsNormWay::kTwoShots
                                                 : RmsNormWay::kOneShot;
    }
    if (asked == RmsNormWay::kOneShot && !x) {
        throw std::invalid_argument("RMSNorm by one shot needs x in a window");
    }
    if (asked == RmsNormWay::kTwoShots && !both) {
        throw std::invalid_argument("RMSNorm by two shots needs x and residual in windows");
    }
    return asked;
}

void AllReduceRmsNorm::operator()(const RmsNormRows& rows, CUstream stream,
                                  RmsNormWay asked) const {
    RmsNormWay way = asked;
    const std::string text =
        fmt::format("AllReduce and RMSNorm of {} x {} {}, epsilon {}, by {}", rows.rows,
                    rows.hidden, symm::name_of(rows.type), rows.epsilon, symm::name_of(asked));
    const auto check = [&] {
        require_possible(rows);
        way = way_of(rows, asked);
    };
    const auto call_of = [&](unsigned first, unsigned count) {
        const std::size_t skipped = first * bytes_of_row(rows);
        return RmsNormCall{own_.call({{rows.type},
                                      rows.x + skipped,
                                      rows.out + skipped,
                                      std::size_t{count} * rows.hidden}),
                           rows.residual + skipped, rows.weight, rows.hidden, rows.epsilon};
    };
    const bool long_rows = has_long_rows(rows, own_);
    const auto by_packs = [&] {
        const auto at_once = static_cast<unsigned>(room(own_.ranks()) / bytes_of_row(rows));
        for (unsigned first = 0; first < rows.rows; first += at_once) {
            const unsigned count = std::min(at_once, rows.rows - first);
            const RmsNormCall call = call_of(first, count);
            const symm::LaunchShape shape = shape_of(rows, own_, count);
            with_kernel(rows.type, own_.ranks(), long_rows,
                        [&]<class T, int kMost, unsigned kMostThreads>() {
                            symm::launch(stream, shape.blocks, shape.threads,
                                         RmsNormPacks<T, kMost, kMostThreads>{call},
                                         RowNorm<T>::shared_bytes(rows.hidden));
                        });
        }
    };
    const auto by_windows = [&] {
        const symm::LaunchShape shape = shape_of(rows, own_, symm::kMaxBarrierBlocks);
        const RmsNormWindowsCall call{call_of(0, rows.rows), way == RmsNormWay::kTwoShots,
                                      own_.meeting(rows.x, rows.residual, bytes_of(rows)),
                                      own_.barrier()};
        with_kernel(rows.type, own_.ranks(), long_rows,
                    [&]<class T, int kMost, unsigned kMostThreads>() {
                        symm::launch(stream, shape.blocks, shape.threads,
                                     RmsNormWindows<T, kMost, kMostThreads>{call},
                                     shared_bytes<T, kMost>(rows.hidden));
                    });
    };
    own_.queue(text, stream, check, [&] { way == RmsNormWay::kPacks ? by_packs() : by_windows(); });
}

}  // namespace your_own
