// A shared library that is linked with libcuda, as many are.

#include <cuda.h>

int devices_of_the_library() {
    int devices = -1;
    return cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&devices) == CUDA_SUCCESS ? devices : -1;
}
