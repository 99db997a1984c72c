// The kernel of the first way (kernel_ways.hpp). nvcc compiles this file to PTX, and CMake puts the
// text into the program: see CMakeLists.txt.

#include "labs/05_device_prims/kernel_ways/kernel_work.hpp"

// extern "C": in the PTX the kernel has this name. As C++ it would have a longer one, with the
// types of its parameters in it (mangling), and cuLibraryGetKernel would not find it by this name.
extern "C" __global__ void symm_scale_and_shift(symm::Numbers numbers, std::uint32_t a,
                                                std::uint32_t b) {
    symm::apply(symm::simt::ThreadBlock{}, numbers, a, b, &symm::scale_and_shift);
}
