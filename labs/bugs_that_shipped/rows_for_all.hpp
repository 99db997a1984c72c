#pragma once
/// \file
/// An AllGather by multicast: each rank stores its row once, and all ranks have it.
///
/// | the kernel of call e          | in whose memory       | why                                  |
/// |-------------------------------|-----------------------|--------------------------------------|
/// | stores its row in bank e % 2  | all ranks', by `all`  | no rank still loads this bank        |
/// | barrier                       | all ranks'            | all rows of this call have come      |
/// | copies the bank to its output | its own               | a peer's call e + 2 stores there after barrier e + 1, which this rank passes after its copy |
///
/// Model of vLLM's mailboxes for several nodes, with a barrier instead of sentinels (README.md,
/// "B.13").

#include "labs/05_device_prims/multicast_barrier.hpp"

namespace symm::bugs_that_shipped {

constexpr int kMostRows = 8;

/// Memory of a rank, behind a multicast address.
struct Rows {
    simt::Pack16 row[2][kMostRows];  ///< By bank and sender.
};

/// A call of one thread.
struct RowsForAll {
    __host__ __device__ void operator()(const simt::ThreadBlock& block, MulticastBarrier& barrier,
                                        std::uint32_t epoch, const simt::Pack16& mine,
                                        simt::Pack16* out) const {
        simt::store_to_all(block, &all->row[epoch % 2][rank], mine);
        if (barrier.arrive_and_wait()) {
            for (int p = 0; p < ranks; ++p) {
                out[p] = own->row[epoch % 2][p];
            }
        }
    }

    Rows* own;
    Rows* all;  ///< The multicast address.
    int rank;
    int ranks;
};

}  // namespace symm::bugs_that_shipped
