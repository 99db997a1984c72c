#include "labs/05_device_prims/ll.hpp"
#include "labs/05_device_prims/ring_dispatch.hpp"

namespace symm {

void launch_ll(CUstream stream, unsigned threads, const RingLaunch& launch) {
    launch_ring<LL>(stream, threads, launch);
}

unsigned resident_ll_blocks(unsigned threads) {
    return resident_ring_blocks<LL>(threads);
}

}  // namespace symm
