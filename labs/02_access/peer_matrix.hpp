#pragma once
/// \file
/// Which device may use which device's memory, and how well they are connected.
///
/// Four GPUs, all peers of each other, and pair 3 -> 1 found broken:
///
///     device         memory of 0         memory of 1         memory of 2         memory of 3
///     --------------------------------------------------------------------------------------
///     0                      own  yes rank 0 atomics  yes rank 0 atomics  yes rank 0 atomics
///     1       yes rank 0 atomics                 own  yes rank 0 atomics  yes rank 0 atomics
///     2       yes rank 0 atomics  yes rank 0 atomics                 own  yes rank 0 atomics
///     3       yes rank 0 atomics            EXCLUDED  yes rank 0 atomics                 own
///
/// A pair has a direction: `{accessor, owner}` is what the accessor's loads and stores do to the
/// owner's memory. The other direction may well be different.
///
/// Source: CUDA Driver API, "Peer Context Memory Access": cuDeviceCanAccessPeer,
/// cuDeviceGetP2PAttribute. NCCL asks the same in src/transport/p2p.cc (p2pCanConnect) and weighs
/// the links itself from the PCI tree and NVML (src/graph/paths.cc).

#include <string>
#include <vector>

namespace symm {

/// Two devices, in the direction of the access.
struct Pair {
    int accessor;  ///< Whose kernel (or copy) it is.
    int owner;     ///< Whose memory it is.
    friend bool operator==(const Pair&, const Pair&) = default;
};

/// `device 2 -> memory of device 1`.
std::string describe(const Pair& pair);

/// What the driver says of a pair, and what we found out since.
struct PeerLink {
    bool access = false;       ///< The driver allows loads, stores and copies.
    int performance_rank = 0;  ///< 0 is the best link of this machine; higher is slower.
    bool atomics = false;      ///< Atomic operations on the owner's memory happen there, whole.
    std::string excluded;      ///< Why the pair is not used in spite of the driver; empty: it is.
    bool usable() const { return access && excluded.empty(); }
};

/// All pairs of a machine. Copyable; exclude() is the only change after query().
class PeerMatrix {
public:
    /// Asks the driver. Throws CudaError.
    static PeerMatrix query();

    /// How many devices there are, numbered from 0.
    int devices() const { return devices_; }
    /// Throws std::out_of_range for a device that is not there.
    const PeerLink& link(const Pair& pair) const;
    bool usable(const Pair& pair) const { return link(pair).usable(); }
    /// From here on the pair is not usable. The first reason stays. Throws std::out_of_range, and
    /// std::invalid_argument for a device and itself.
    void exclude(const Pair& pair, const std::string& reason);

    /// All pairs of two different devices that may be used.
    std::vector<Pair> usable_pairs() const;
    /// All pairs that were excluded.
    std::vector<Pair> excluded_pairs() const;
    /// The devices that may use memory of `owner`, the owner among them.
    std::vector<int> users_of(int owner) const;

    /// The table for people; a line for every excluded pair with its reason.
    std::string text() const;

private:
    explicit PeerMatrix(int devices);
    PeerLink& at(const Pair& pair);

    int devices_;
    std::vector<PeerLink> links_;  // accessor * devices_ + owner
};

}  // namespace symm
