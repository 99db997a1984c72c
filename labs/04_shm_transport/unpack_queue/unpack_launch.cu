#include "common/cuda/launch.hpp"
#include "labs/04_shm_transport/unpack_queue/unpack_queue.hpp"

namespace symm {

void launch_unpack(CUstream stream, const UnpackKernel& kernel) {
    launch(stream, kUnpackBlocks, is_emulated() ? 8 : 512, kernel, sizeof(std::uint64_t));
}

}  // namespace symm
