#include "labs/05_device_prims/ll128.hpp"
#include "labs/05_device_prims/ring_dispatch.hpp"

namespace symm {

void launch_ll128(CUstream stream, unsigned threads, const RingLaunch& launch) {
    launch_ring<LL128>(stream, threads, launch);
}

unsigned resident_ll128_blocks(unsigned threads) {
    return resident_ring_blocks<LL128>(threads);
}

}  // namespace symm
