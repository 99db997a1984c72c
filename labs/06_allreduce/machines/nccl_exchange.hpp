#pragma once
/// \file
/// An exchange by NCCL: one communicator for each rail, whose ranks NCCL treats as hosts.
///
/// NCCL's kernels run in the caller's stream, between ours. So a part is finished when the stream
/// reaches it, and no thread and no staging is needed. But there is no pipeline either (README.md).
///
/// NCCL chooses the order in which it adds up the machines. If NCCL's communicator is aborted, its
/// kernels end with any data in the buffer. So the abort is first told to a kernel queued after
/// each of them, which makes the rank's later kernels give up (staged_exchange.hpp tells why). But
/// NCCL also sends a part whose kernels have given up before: then only the ranks of that machine
/// report a failure, and results of the others may be wrong.

#include <string>

#include "common/cuda/device_memory.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/nccl/nccl_communicator.hpp"
#include "common/ranks/rank.hpp"
#include "labs/06_allreduce/machines/exchange.hpp"
#include "labs/06_allreduce/machines/rail.hpp"

namespace symm {

class NcclExchange final : public Exchange {
public:
    /// Collective along the rail, which carries the communicator's id. Throws std::runtime_error.
    NcclExchange(const Rank& rank, const NcclLibrary& library, Rail& rail);

    int machine() const override { return machine_; }
    int machines() const override { return machines_; }
    std::size_t depth() const override { return 1; }
    void require_possible(std::size_t bytes, CUstream stream) override;
    void start(const RailCall& call, CUdeviceptr buffer, CUstream stream,
               const simt::Timeout& kernels) override;
    void finish(CUstream) override {}
    void throw_if_failed() override;
    void fail(std::string_view text) noexcept override;

private:
    int rank_;
    int machine_;
    int machines_;
    NcclCommunicator communicator_;
    KernelTimeout timeout_;  ///< Aborted before NCCL's kernels; no kernel waits with it.
    DeviceMemory epochs_;    ///< For the kernel that divides sums.
    std::string failure_;
};

}  // namespace symm
