#include "symm/nccl/collective_call.hpp"

#include <fmt/core.h>

#include "labs/05_device_prims/reduction/data_type.hpp"

namespace symm::drop_in {
namespace {

/// The function of symm.h for a call: the one that queues it, or that says whether it may wait.
template <bool kMayWait>
auto by_symm(symm_comm* comm, const CollectiveCall& call) {
    const auto one_of = [](auto queue, auto may_wait) {
        if constexpr (kMayWait) {
            return may_wait;
        } else {
            return queue;
        }
    };
    const auto& [collective, in, out, count, nccl_type, nccl_op, root, stream] = call;
    const auto type = static_cast<symm_type>(nccl_type);  // numbered as in nccl.h
    const auto op = static_cast<symm_op>(nccl_op);
    switch (collective) {
        case Collective::kReduceScatter:
            return one_of(symm_reduce_scatter, symm_reduce_scatter_may_wait)(comm, in, out, count,
                                                                             type, op, stream);
        case Collective::kAllGather:
            return one_of(symm_all_gather, symm_all_gather_may_wait)(comm, in, out, count, type,
                                                                     stream);
        case Collective::kBroadcast:
            return one_of(symm_broadcast, symm_broadcast_may_wait)(comm, in, out, count, type, root,
                                                                   stream);
        case Collective::kReduce:
            return one_of(symm_reduce, symm_reduce_may_wait)(comm, in, out, count, type, op, root,
                                                             stream);
        case Collective::kAllReduce:
            break;
    }
    return one_of(symm_all_reduce, symm_all_reduce_may_wait)(comm, in, out, count, type, op,
                                                             stream);
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
