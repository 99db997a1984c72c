#pragma once
/// \file
/// The barrier at which the threads of a block decide together whether to go on or to leave. Each
/// passes whether all is well with it, and all get the same answer. README.md has the reasons.
///
/// | who          | does                                             | why                           |
/// |--------------|--------------------------------------------------|-------------------------------|
/// | some threads | wait for a peer, each with a Waiter              | one thread per peer is enough |
/// | all threads  | `barrier.sync(arrived)`; the others pass true    | all are asked at the same place |
/// | all threads  | go on, or leave                                  | all got the same answer       |
///
/// Source: NCCL's barrier_red_or and `ncclShmem.aborted` in src/device/common.h.

#include "common/simt/thread_block.hpp"

namespace symm {

/// Every thread of the block has one, and all call sync() together.
class AbortBarrier {
public:
    __host__ __device__ explicit AbortBarrier(const simt::ThreadBlock& block) : block_(block) {}

    /// Waits for all threads of the block; afterwards all see what each wrote before. True on all
    /// threads if all have passed true, in this call and all before it; else false on all.
    __host__ __device__ bool sync(bool all_is_well) {
        aborted_ = block_.sync_or(aborted_ || !all_is_well);
        return !aborted_;
    }

private:
    simt::ThreadBlock block_;
    bool aborted_ = false;
};

}  // namespace symm
