#include "labs/05_device_prims/ring/ll128.hpp"
#include "labs/05_device_prims/ring/ring_kernels.hpp"

namespace symm {

const RingKernels kLL128Kernels = kernels_of<LL128>();

}  // namespace symm
