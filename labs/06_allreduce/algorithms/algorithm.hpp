#pragma once
/// \file
/// The algorithms, one row for each collective that they make: what they need, how they are
/// launched, why a call takes them, and their kernels. algorithm.cpp has the table; the tuner, the
/// communicator and the programs go through it.

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "common/cuda/gpu.hpp"
#include "common/sys/named.hpp"
#include "labs/05_device_prims/reduction/collective.hpp"
#include "labs/05_device_prims/reduction/data_type.hpp"

namespace symm {

/// In the order in which sizes grow. kAuto leaves it to the tuner, which never takes kMulticast.
/// Those that SYMM_ALGORITHMS has loaded come last (loaded.hpp).
enum class Algorithm { kAuto, kOneShot, kSentinel, kPush, kTwoShot, kChunks, kCopy, kMulticast };

constexpr auto names_of(Algorithm) {
    return names("Algorithm", "auto", "oneshot", "sentinel", "push", "twoshot", "chunks", "copy",
                 "multicast");
}
/// kAuto is none of them.
inline constexpr std::size_t kAlgorithms = kNamesOf<Algorithm>.values.size() - 1;
/// The tuner chooses among the first ones, up to kCopy.
inline constexpr std::size_t kTunedAlgorithms = static_cast<std::size_t>(Algorithm::kCopy);
/// Algorithms that are loaded have the next numbers.
inline constexpr std::size_t kMostLoaded = 4;
constexpr Algorithm loaded_algorithm(std::size_t place) {
    return static_cast<Algorithm>(kAlgorithms + 1 + place);
}
/// Those of loaded ones, too.
std::span<const std::string_view> all_names(Algorithm);

inline constexpr std::size_t kAnySize = std::numeric_limits<std::size_t>::max();

/// One thread per item, in whole warps, and no more blocks than `most`.
LaunchShape shape_for(std::size_t items, const LaunchShape& most);

struct AlgorithmKernels;  // kernels.hpp

/// For which calls an algorithm stands in, when the one that the tuning table chooses cannot make
/// them.
enum class StandsIn {
    kNever,
    kInWindows,  ///< For those with buffers in windows.
    kOutside,    ///< For the others.
};

/// One algorithm of one collective. Sizes are bytes of the larger buffer.
struct AlgorithmRow {
    Collective collective;
    Algorithm algorithm;
    StandsIn stands_in = StandsIn::kNever;

    struct Needs {
        bool floating_only = false;  ///< The sentinel, which integers do not have.
        bool in_switch = false;      ///< The switch reduces: simt/multimem.hpp tells what it can.
        bool windows = false;        ///< Peers use a buffer in place, so it lies in a window.
        bool or_slots = false;       ///< But if it does not, the data goes through peer slots.
        bool addresses = false;      ///< The ranks exchange their buffers' addresses.
        bool own_device = false;     ///< Each rank needs a device of its own.
        int most_ranks = 1U << 30;
    } needs = {};

    struct Cost {
        bool for_links = false;  ///< It gains nothing where ranks share a device.
        /// Its kernels need few registers, and none of a rank's blocks waits for one block of a
        /// peer. So more of its blocks may be launched than of others.
        bool small_kernels = false;
        bool by_parts = false;            ///< A rank's threads share one part of the data, not all.
        unsigned bytes_per_thread = 16;   ///< At a time.
        unsigned most_blocks = 1U << 30;  ///< Of a launch.
        /// The most bytes of one launch, of `count` elements: a larger call takes several.
        std::size_t (*at_once)(int ranks) = [](int) { return kAnySize; };
        /// The most bytes that so many blocks should move: above, two shots are faster.
        std::size_t (*enough_for)(unsigned blocks) = [](unsigned) { return kAnySize; };
        /// Calls of more bytes than this, with a buffer in no window, take it if the tuning table's
        /// algorithm needs windows. If several rows do, that with the highest limit.
        std::size_t (*outside_windows_above)(int ranks, unsigned blocks) = [](int, unsigned) {
            return kAnySize;
        };
        LaunchShape (*shape)(std::size_t items, const LaunchShape& most) = shape_for;
        /// The sizes, more than `above` and up to `up_to`, for which calls take it whatever the
        /// tuning table says: those of a loaded algorithm.
        std::size_t (*above)(int ranks) = [](int) { return kAnySize; };
        std::size_t (*up_to)(int ranks) = [](int) { return std::size_t{0}; };
    } cost = {};

    struct Texts {
        /// Why a call takes it. {up_to} and {above}: the tuning table's limits; {times}: ranks / 2.
        std::string_view why;
    } texts;

    const AlgorithmKernels* kernels;

    bool supports(DataType type, ReduceOp op) const;
    bool takes(int ranks, std::size_t bytes) const {
        return bytes > cost.above(ranks) && bytes <= cost.up_to(ranks);
    }
};

/// By collective, then in the order of Algorithm.
std::span<const AlgorithmRow> algorithm_rows();
/// Null: the algorithm does not make this collective.
const AlgorithmRow* find_row(Collective collective, Algorithm algorithm);
/// Adds one that was not there when this program was built: loaded_algorithm(0), then 1 and so on,
/// up to kMostLoaded. Its name is new, and lives for ever. Called by one thread at a time.
void add_algorithm(std::string_view name, const AlgorithmRow& row);
/// The names of the algorithms that make a collective and `fit`: "oneshot, twoshot or copy".
std::string alternatives(
    Collective collective,
    bool (*fit)(const AlgorithmRow&) = [](const AlgorithmRow&) { return true; });

/// All algorithms' kernels, each defined beside its launches.
#define SYMM_ALL_KERNELS(KERNELS)         \
    KERNELS(kOneShotKernels)              \
    KERNELS(kReduceScatterPacketsKernels) \
    KERNELS(kAllGatherPacketsKernels)     \
    KERNELS(kBroadcastPacketsKernels)     \
    KERNELS(kReducePacketsKernels)        \
    KERNELS(kSentinelKernels)             \
    KERNELS(kPushKernels)                 \
    KERNELS(kTwoShotKernels)              \
    KERNELS(kChunksKernels)               \
    KERNELS(kCopyKernels)                 \
    KERNELS(kMulticastKernels)

/// A bank's room for one sender's data, in bytes.
inline constexpr std::size_t kOneShotLimit = 512 * 1024;
/// Room behind the multicast address, in bytes: with a barrier's counts, less than 2 MiB.
inline constexpr std::size_t kMulticastBytes = (std::size_t{2} << 20) - (std::size_t{16} << 10);
std::size_t sentinel_limit(int ranks);
std::size_t push_limit(int ranks);

}  // namespace symm
