#include "labs/05_device_prims/ring_dispatch.hpp"
#include "labs/05_device_prims/simple.hpp"

namespace symm {

void launch_simple(CUstream stream, unsigned threads, const RingLaunch& launch) {
    launch_ring<Simple>(stream, threads, launch);
}

unsigned resident_simple_blocks(unsigned threads) {
    return resident_ring_blocks<Simple>(threads);
}

}  // namespace symm
