#pragma once
/// \file
/// Calls of a collective in a scene: inputs, and the check of the outputs.

#include <cuda.h>
#include <fmt/core.h>

#include <bit>
#include <functional>
#include <string>
#include <vector>

#include "labs/06_allreduce/algorithms/call.hpp"
#include "tools/explore/explore.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {

using explore::fail;
using explore::Scene;
using simt::ThreadBlock;

inline constexpr int kMostExplored = 5;           ///< Ranks.
inline constexpr std::size_t kMostElements = 64;  ///< Of a buffer, with one after them.

/// Unique to rank, call and index.
template <class T>
T input(int rank, unsigned call, std::size_t i) {
    return static_cast<T>(1 + static_cast<unsigned>(rank) + 10 * call + 100 * i);
}

/// After the last element of an output.
template <class T>
constexpr T kAfter = 7777;
/// In an output that is not written.
template <class T>
constexpr T kBefore = 8888;

template <class T>
T* elements(CUdeviceptr address) {
    return reinterpret_cast<T*>(address);
}

/// A buffer of each rank.
template <class T>
CUdeviceptr buffer(Scene& scene, const std::string& name, int rank) {
    return reinterpret_cast<CUdeviceptr>(scene.allocate<T>(kMostElements, name, rank));
}

struct Ranks {
    int ranks;
    unsigned threads = 1;
    unsigned blocks = 1;
    bool two_grids = false;          ///< Every second call has one block.
    unsigned last_in_one_block = 0;  ///< So many last calls have one block.

    unsigned grids() const { return two_grids || last_in_one_block > 0 ? 2 : 1; }
    /// Whether the call `c` of `calls` has one block, and is not of the grid of the others.
    bool in_one_block(unsigned c, std::size_t calls) const {
        return two_grids ? c % 2 == 1 : c + last_in_one_block >= calls;
    }
};

struct Other {
    std::uint32_t epoch = 0;  ///< The number of the last call before.
    bool in_place = false;
    /// In call 1, all bits of rank 1's first two elements are set, and those of another element on
    /// each of ranks 0 and 1: as floats, a half of their sum's pack has the bits of the sentinel.
    bool all_ones = false;
    bool replaces_sentinel = false;  ///< Results are sent as packs without flags.
    /// Each bank's second slots have packets of 2^32 calls ago, with the flag of its last call.
    bool old_packets = false;
    unsigned slots = 2;                                ///< Of a mailbox, for each sender.
    std::size_t at_once = kMostElements;               ///< A larger call is made in pieces.
    bool unaligned_in = false, unaligned_out = false;  ///< Rank 1's buffer.
    bool average = false;                              ///< Instead of a sum.
    bool rounds = false;                               ///< Only rank order gives the floats' sums.
    bool any_root = false;                             ///< A call's root follows from its count.
    std::size_t all_reduced = 0;  ///< A call of so many elements is an AllReduce.
    bool overlap = false;         ///< Each call is a dependent launch (overlap.hpp),
    bool triggers_first = false;  ///< which lets the next one start before all else.
};

/// The ranks' calls with `counts[c]` elements, of each part if there are parts, one after another.
struct Calls {
    Ranks who;
    std::vector<std::size_t> counts;
    Other other = {};
    Collective collective = Collective::kAllReduce;

    std::size_t parts_in() const { return row_of(collective).in_has_parts() ? who.ranks : 1; }
    std::size_t parts_out() const { return row_of(collective).out_has_parts() ? who.ranks : 1; }

    ReduceOp op() const { return other.average ? ReduceOp::kAvg : ReduceOp::kSum; }
    /// Of a Broadcast or a Reduce of `count` elements.
    int root(std::size_t count) const {
        return other.any_root ? static_cast<int>(count % static_cast<unsigned>(who.ranks)) : 1;
    }

    /// What call c is.
    const CollectiveRow& row(unsigned c) const {
        return row_of(counts[c] == other.all_reduced ? Collective::kAllReduce : collective);
    }

    template <class T>
    T in(int rank, unsigned c, std::size_t i) const {
        const bool ones = rank == 0 ? i == 2 : rank == 1 && (i < 2 || i == 3);
        if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
            if (other.all_ones && c == 1 && ones) {
                return std::bit_cast<T>(~std::uint32_t{0});
            }
        }
        if constexpr (std::is_same_v<T, float>) {
            constexpr float kLarge = 1 << 24;  // an odd number added to it is rounded
            if (other.rounds && (rank == 1 || rank == 2)) {
                return input<T>(rank, c, i) + (rank == 1 ? kLarge : -kLarge);
            }
        }
        return input<T>(rank, c, i);
    }
    /// Element i of `rank`'s output of call c.
    template <class T>
    T result(int rank, unsigned c, std::size_t i) const {
        if (row(c).from == Holders::kRoot) {
            return in<T>(root(counts[c]), c, i);
        }
        if (row(c).from == Holders::kOwner) {
            return in<T>(static_cast<int>(i / counts[c]), c, i % counts[c]);
        }
        if (!row(c).writes(rank, root(counts[c]))) {
            return other.in_place ? in<T>(rank, c, i) : kBefore<T>;
        }
        const std::size_t at = i + (parts_in() > 1 ? rank * counts[c] : 0);
        T sum = in<T>(0, c, at);
        for (int p = 1; p < who.ranks; ++p) {
            sum = static_cast<T>(sum + in<T>(p, c, at));
        }
        if constexpr (std::is_integral_v<T>) {
            return other.average ? static_cast<T>(sum / static_cast<T>(who.ranks)) : sum;
        } else {
            return other.average ? sum * static_cast<T>(1.0 / who.ranks) : sum;
        }
    }
};

/// A rank's call for a kernel. Its count and its root are set call by call.
template <class T>
KernelParams kernel_call(const Calls& calls, const Buffers& mine, int rank,
                         const simt::Timeout& timeout) {
    const DataType type = sizeof(T) == 1          ? DataType::kUint8
                          : std::is_integral_v<T> ? DataType::kUint32
                                                  : DataType::kFloat;
    const int ranks = calls.who.ranks;
    return {{Reduction(calls.op(), ranks), timeout, rank, ranks},
            {{type, calls.op(), calls.collective, calls.root(0)}, mine.in, mine.out, 0}};
}

/// A rank's buffers: both of call `c`, if each call has its own.
template <class T>
Buffers buffers_of(Scene& scene, const Calls& calls, int rank, const std::string& c = "") {
    const auto begin = [&](const std::string& name, bool unaligned) {
        return buffer<T>(scene, name + c, rank) + (unaligned && rank == 1 ? sizeof(T) : 0);
    };
    const CUdeviceptr in = begin("in", calls.other.unaligned_in);
    return {in, calls.other.in_place ? in : begin("out", calls.other.unaligned_out)};
}

/// Fills the input of call c, and an output that the rank does not write.
template <class T>
void fill(const Calls& calls, int rank, unsigned c, CUdeviceptr in, CUdeviceptr out) {
    for (std::size_t i = 0; i < calls.counts[c] * calls.parts_in(); ++i) {
        elements<T>(in)[i] = calls.in<T>(rank, c, i);
    }
    const bool writes = calls.row(c).writes(rank, calls.root(calls.counts[c]));
    for (std::size_t i = 0; i < calls.counts[c] && in != out && !writes; ++i) {
        elements<T>(out)[i] = kBefore<T>;
    }
}

/// The element after the output of call c.
template <class T>
T& after(const Calls& calls, unsigned c, CUdeviceptr out) {
    return elements<T>(out)[calls.counts[c] * calls.parts_out()];
}

/// Fails if a half of a pack is the sentinel: it can be sent to no peer, so peers have other bits.
inline void check_sent(int rank, const float* out, std::size_t count) {
    const auto bits = [&](std::size_t i) {
        return std::bit_cast<std::uint32_t>(explore::result(out + i));
    };
    for (std::size_t i = 0; i + 1 < count; i += 2) {
        if ((bits(i) & bits(i + 1)) == ~std::uint32_t{0}) {
            fail(fmt::format("rank {} has the sentinel in elements {} and {}", rank, i, i + 1));
        }
    }
}

/// Checks the output of call c, and that the element after it is as before.
template <class T>
void check(const Calls& calls, int rank, unsigned c, CUdeviceptr out) {
    if (explore::result(&after<T>(calls, c, out)) != kAfter<T>) {
        fail(fmt::format("rank {} changed the element after the output of call {}", rank, c + 1));
    }
    if constexpr (std::is_same_v<T, float>) {
        if (calls.other.replaces_sentinel) {
            check_sent(rank, elements<T>(out), calls.counts[c]);
        }
    }
    for (std::size_t i = 0; i < calls.counts[c] * calls.parts_out(); ++i) {
        const T result = calls.result<T>(rank, c, i);
        const T seen = explore::result(elements<T>(out) + i);
        if (seen != result && (seen == seen || result == result)) {  // not both NaNs
            fail(fmt::format("rank {}, call {}, element {}: {} instead of {}", rank, c + 1, i, seen,
                             result));
        }
    }
}

/// Makes the calls: fills the input, runs `kernel(count)`, checks the output. A rank that has given
/// up checks nothing, as its host would throw. `is_mine(c)`: the block's grid makes call c.
template <class T, class Kernel>
void make_calls(
    const ThreadBlock& block, const Calls& calls, int rank, CUdeviceptr in, CUdeviceptr out,
    const simt::Timeout& timeout, const Kernel& kernel,
    const std::function<bool(unsigned)>& is_mine = [](unsigned) { return true; }) {
    for (unsigned c = 0; c < calls.counts.size(); ++c) {
        const bool first = block.grid_rank() == 0 && is_mine(c);
        if (first && !explore::gave_up(timeout)) {
            fill<T>(calls, rank, c, in, out);
            if (c == 0) {
                after<T>(calls, c, out) = kAfter<T>;
            }
        }
        explore::kernel_end();
        if (is_mine(c)) {
            kernel(calls.counts[c]);
        }
        explore::kernel_end();
        if (first && !explore::gave_up(timeout)) {
            check<T>(calls, rank, c, out);
            if (c + 1 < calls.counts.size()) {
                after<T>(calls, c + 1, out) = kAfter<T>;
            }
        }
        if (calls.who.grids() > 1) {
            explore::kernel_end();  // the next call is perhaps another grid's
        }
    }
}

/// Launches a rank's grids, which make the calls with `kernel(block, count)`.
template <class T, class Kernel>
void launch_calls(Scene& scene, const Calls& calls, std::size_t shared_bytes, int rank,
                  CUdeviceptr in, CUdeviceptr out, const simt::Timeout& timeout,
                  const Kernel& kernel) {
    const unsigned grids = calls.who.grids();
    for (unsigned g = 0; g < grids; ++g) {
        scene.launch(rank, {g == 0 ? calls.who.blocks : 1, calls.who.threads, shared_bytes},
                     [=](const ThreadBlock& block) {
                         make_calls<T>(
                             block, calls, rank, in, out, timeout,
                             [&](std::size_t count) { kernel(block, count); },
                             [=](unsigned c) {
                                 return grids == 1 ||
                                        calls.who.in_one_block(c, calls.counts.size()) == (g == 1);
                             });
                     });
    }
}

/// Scenes of calls, of a function that fills a scene.
template <class Fill>
auto scenes_of(Fill fill) {
    return [=](const Calls& calls) { return [=](Scene& scene) { fill(scene, calls); }; };
}

}  // namespace symm
