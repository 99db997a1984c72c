#include "labs/04_shm_transport/transfer.hpp"

#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"

namespace symm {

void launch_transfer(CUstream stream, unsigned threads, const TransferKernel& transfer) {
    if (transfer.blocks() > 0) {
        launch(stream, transfer.blocks(), threads, transfer, sizeof(EndState));
    }
}

unsigned transfer_resident_blocks(unsigned threads) {
    return resident_blocks<TransferKernel>(threads, sizeof(EndState));
}

}  // namespace symm
