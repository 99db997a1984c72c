#pragma once
/// \file
/// AllToAll, as a program calls it. all_to_all_kernel.hpp has the kernels.

#include <symm/symm.hpp>

namespace symm::collectives {

/// Which kernel makes a call. kAuto: packets, if the parts fit into the mailbox and are at most
/// AllToAll::kSmall; else windows.
enum class AllToAllWay { kAuto, kPackets, kWindows };

/// A call's buffers: `in` and `out` have a part for each rank, in their order, with room for `most`
/// elements of `element` bytes. They do not overlap, and are fastest at multiples of 16 bytes.
struct AllToAllParts {
    CUdeviceptr in;
    CUdeviceptr out;
    std::size_t most;
    unsigned element = 1;
    /// In device memory, std::uint32_t (at a multiple of 4 bytes): how many elements this rank has
    /// for each rank. Only this rank knows it, and may compute it on the stream. 0: `most` each.
    CUdeviceptr counts = 0;
    /// With counts, likewise: becomes how many elements each rank had for this one, also where it
    /// is more than `most`: then the first `most` have come.
    CUdeviceptr received = 0;
};

/// One rank's AllToAlls. Construction and calls are collective. The communicator outlives it.
class AllToAll {
public:
    static constexpr std::size_t kSlots = 32 * 1024;  ///< For eight bytes each, and one count.
    static constexpr std::size_t kRoom = 8 * (kSlots - 1);  ///< Bytes of a part in the mailbox.
    static constexpr std::size_t kSmall = 64 * 1024;        ///< Larger parts go through windows.

    explicit AllToAll(symm::Communicator& communicator);

    /// Queues a call. For large parts `out` lies in a window; for kAuto, on all ranks or on none.
    /// Throws std::invalid_argument for a call that is not possible.
    void operator()(const AllToAllParts& parts, CUstream stream,
                    AllToAllWay way = AllToAllWay::kAuto) const;

private:
    symm::OwnCollective own_;
};

}  // namespace symm::collectives
