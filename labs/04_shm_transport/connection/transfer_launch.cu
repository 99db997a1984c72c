#include "labs/04_shm_transport/connection/transfer_kernel.hpp"

#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"

namespace symm {
namespace {

unsigned threads_per_block() {
    return is_emulated() ? 32 : 512;
}

}  // namespace

void launch_transfer(CUstream stream, const TransferKernel& transfer) {
    if (transfer.blocks() > 0) {
        launch(stream, transfer.blocks(), threads_per_block(), transfer, sizeof(EndState));
    }
}

unsigned transfer_resident_blocks() {
    return resident_blocks<TransferKernel>(threads_per_block(), sizeof(EndState));
}

}  // namespace symm
