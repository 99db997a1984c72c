#pragma once
/// \file
/// AllReduce of two ranks, fused with what a layer does next: the sum is added to a residual and
/// scaled. Each call is a dependent launch, which starts while the kernel before it still runs.
///
/// | each thread                       | to what              | why                                 |
/// |-----------------------------------|----------------------|-------------------------------------|
/// | waits for the kernel before       |                      | that writes the input, the residual |
/// | loads weight and residual         | its own rank's       | early, while packets travel         |
/// | stores its input in bank call % 2 | the peer's slot      | the packet shows that it is there   |
/// | lets the next kernel start        |                      | that waits for the end of this one  |
/// | polls until the packet is there   | its own slot         | its flag is the call's number       |
/// | stores sum and output             | residual, out        | the next call adds to the residual  |
///
/// Model of FlashInfer's AllReduce with residual and RMSNorm (README.md, "B.12").

#include <cstdint>

#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/05_device_prims/ll_packet.hpp"

namespace symm::bugs_that_shipped {

constexpr unsigned kLayerThreads = 2;

/// Slots of a rank, zeroed. `slot[bank][thread]`.
struct LayerMemory {
    Packet slot[2][kLayerThreads];
};

/// Parameters of a call, number 1, 2, ... One element per thread. No kernel writes `weight`.
struct LayerParams {
    SymmetricPointer<LayerMemory> memory;
    const std::uint32_t* in;
    const std::uint32_t* weight;
    std::uint32_t* residual;
    std::uint32_t* out;
    simt::Timeout timeout;
    int rank;
    std::uint32_t call;
};

/// What a thread does with the sum. Loads its operands when it is made.
class Epilogue {
public:
    __host__ __device__ Epilogue(const LayerParams& call, unsigned i)
        : call_(call), i_(i), weight_(call.weight[i]), residual_(call.residual[i]) {}

    __host__ __device__ void store(std::uint32_t sum) const {
        const std::uint32_t residual = residual_ + sum;
        call_.residual[i_] = residual;
        call_.out[i_] = residual * weight_;
    }

private:
    const LayerParams& call_;
    unsigned i_;
    std::uint32_t weight_;
    std::uint32_t residual_;
};

/// A call, of a block of kLayerThreads threads.
struct FusedLayer : LayerParams {
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const unsigned i = block.thread_rank();
        block.wait_for_predecessor();
        const Epilogue epilogue(*this, i);
        simt::Waiter waiter(timeout);
        if (waiter.gave_up()) {
            return;
        }
        write_packet(&memory.of(1 - rank)->slot[call % 2][i], in[i], call);
        block.launch_dependents();
        const simt::Waiting waiting{simt::Wait::kPacket, rank, 1 - rank, call};
        std::uint64_t peers = 0;
        if (read_packet(waiter, &memory.of(rank)->slot[call % 2][i], waiting, peers)) {
            epilogue.store(in[i] + static_cast<std::uint32_t>(peers));
        }
    }
};

}  // namespace symm::bugs_that_shipped
