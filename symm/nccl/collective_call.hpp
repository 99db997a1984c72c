#pragma once
/// \file
/// A collective that the program calls, which symm.h or NCCL can make.

#include <cuda.h>

#include <cstddef>
#include <string>

#include "labs/05_device_prims/reduction/collective.hpp"
#include "symm/c/symm.h"
#include "symm/nccl/nccl.hpp"

namespace symm::drop_in {

/// The arguments of a collective, as in nccl.h.
struct CollectiveCall {
    Collective collective;
    const void* in;
    void* out;
    std::size_t count;
    int type;
    int op;  ///< ncclSum where there is none.
    int root;
    CUstream stream;

    /// `ncclAllReduce`.
    std::string name() const;
    /// Why this call is NCCL's by any communicator, or null. Looks only at what all ranks share.
    const char* why_always_nccls() const;
    /// Of the larger buffer, of a call that is ours.
    std::size_t bytes(int ranks) const;

    /// Makes the call by symm.h.
    symm_result queue(symm_comm* comm) const;
    /// Whether queue() may wait for other ranks on the host.
    bool may_wait(symm_comm* comm) const;
    /// Makes the call by NCCL.
    Result queue_nccls(ncclComm* comm) const;
};

}  // namespace symm::drop_in
