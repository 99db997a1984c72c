#include "symm/nccl/collective_call.hpp"

#include <fmt/core.h>

#include "labs/05_device_prims/reduction/data_type.hpp"

namespace symm::drop_in {
namespace {

/// Makes the call by its function of symm.h, or asks whether that may wait.
template <bool kMayWait>
auto by_symm(symm_comm* comm, const CollectiveCall& call) {
    const auto make = [&](auto queue, auto may_wait, auto... rest) {
        const auto type = static_cast<symm_type>(call.type);  // numbered as in nccl.h
        if constexpr (kMayWait) {
            return may_wait(comm, call.in, call.out, call.count, type, rest..., call.stream);
        } else {
            return queue(comm, call.in, call.out, call.count, type, rest..., call.stream);
        }
    };
    const auto op = static_cast<symm_op>(call.op);
    switch (call.collective) {
        case Collective::kReduceScatter:
            return make(symm_reduce_scatter, symm_reduce_scatter_may_wait, op);
        case Collective::kAllGather:
            return make(symm_all_gather, symm_all_gather_may_wait);
        case Collective::kBroadcast:
            return make(symm_broadcast, symm_broadcast_may_wait, call.root);
        case Collective::kReduce:
            return make(symm_reduce, symm_reduce_may_wait, op, call.root);
        case Collective::kAllReduce:
            break;
    }
    return make(symm_all_reduce, symm_all_reduce_may_wait, op);
}

}  // namespace

std::string CollectiveCall::name() const {
    return fmt::format("nccl{}", row_of(collective).title);
}

const char* CollectiveCall::why_always_nccls() const {
    return count == 0                         ? "no elements"
           : type < 0 || type > SYMM_BFLOAT16 ? "elements of a type that symm.h lacks"
           : op < 0 || op > SYMM_AVG          ? "an operation that the program made (PreMulSum)"
                                              : nullptr;
}

std::size_t CollectiveCall::bytes(int ranks) const {
    const auto parts = static_cast<std::size_t>(row_of(collective).has_parts() ? ranks : 1);
    return count * size_of(static_cast<DataType>(type)) * parts;  // numbered as in nccl.h
}

symm_result CollectiveCall::queue(symm_comm* comm) const {
    return by_symm<false>(comm, *this);
}

bool CollectiveCall::may_wait(symm_comm* comm) const {
    return by_symm<true>(comm, *this) != 0;
}

Result CollectiveCall::queue_nccls(ncclComm* comm) const {
    switch (collective) {
        case Collective::kReduceScatter:
            return nccl::ReduceScatter(in, out, count, type, op, comm, stream);
        case Collective::kAllGather:
            return nccl::AllGather(in, out, count, type, comm, stream);
        case Collective::kBroadcast:
            return nccl::Broadcast(in, out, count, type, root, comm, stream);
        case Collective::kReduce:
            return nccl::Reduce(in, out, count, type, op, root, comm, stream);
        case Collective::kAllReduce:
            break;
    }
    return nccl::AllReduce(in, out, count, type, op, comm, stream);
}

}  // namespace symm::drop_in
