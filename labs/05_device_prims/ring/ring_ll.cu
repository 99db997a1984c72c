#include "labs/05_device_prims/ring/ll.hpp"
#include "labs/05_device_prims/ring/ring_kernels.hpp"

namespace symm {

const RingKernels kLLKernels = kernels_of<LL>();

}  // namespace symm
