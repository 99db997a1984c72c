#pragma once
/// \file
/// Which device can use which device's memory, and how well the two are connected.
///
/// A device is a *peer* of another if its kernels and copies can access the other's memory
/// (PEER_MATRIX.md). A pair has a direction: `{accessor, owner}` stands for loads, stores and
/// copies that the accessor makes in the owner's memory. The other direction can be different.
///
/// Source: CUDA Driver API, "Peer Context Memory Access": cuDeviceCanAccessPeer,
/// cuDeviceGetP2PAttribute. NCCL does the same in src/transport/p2p.cc (p2pCanConnect), and finds
/// the fast links itself from the PCI tree and NVML (src/graph/paths.cc).

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace symm {

/// Two devices, in the direction of the access.
struct Pair {
    int accessor;  ///< The device that runs the kernel (or copy).
    int owner;     ///< The device whose memory it is.
    friend bool operator==(const Pair&, const Pair&) = default;
    friend bool operator<(const Pair& a, const Pair& b) {
        return std::pair(a.accessor, a.owner) < std::pair(b.accessor, b.owner);
    }
};

/// `device 2 -> memory of device 1`.
std::string describe(const Pair& pair);

/// The driver's answers for a pair, and whether the self-test has excluded it.
struct PeerLink {
    bool access = false;  ///< The driver allows loads, stores and copies.
    /// CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: 0 for the machine's fastest kind of link, more for
    /// slower ones. It has nothing to do with the rank of a process.
    int performance = 0;
    bool atomics = false;  ///< The link carries atomic operations on the owner's memory.
    std::string excluded;  ///< Why the pair is not used although the driver allows it, or empty.
};

/// All pairs of a machine. Copyable; exclude() is the only change after query().
class PeerMatrix {
public:
    /// Asks the driver. Throws CudaError.
    static PeerMatrix query();

    /// Throws std::out_of_range for a device that does not exist.
    const PeerLink& link(const Pair& pair) const { return links_.at(pair); }
    /// Whether the driver allows the access and the pair is not excluded.
    bool usable(const Pair& pair) const;
    /// Makes the pair unusable.
    void exclude(const Pair& pair, const std::string& reason) { links_.at(pair).excluded = reason; }

    /// All pairs of two different devices that may be used.
    std::vector<Pair> usable_pairs() const;
    /// The devices that may use memory of `owner`, the owner among them.
    std::vector<int> users_of(int owner) const;

    /// The table that PEER_MATRIX.md shows.
    std::string text() const;

private:
    int devices_ = 0;
    std::map<Pair, PeerLink> links_;
};

}  // namespace symm
