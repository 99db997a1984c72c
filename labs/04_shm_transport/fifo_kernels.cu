#include "labs/04_shm_transport/fifo_kernels.hpp"

#include "common/cuda/launch.hpp"

namespace symm {

void launch_transfer(CUstream stream, unsigned threads, const TransferKernel& transfer) {
    if (transfer.blocks() > 0) {
        launch(stream, transfer.blocks(), threads, transfer, sizeof(FifoBlockState));
    }
}

}  // namespace symm
