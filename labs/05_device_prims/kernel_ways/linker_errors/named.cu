// A kernel to find by name. LINKAGE is empty, or extern "C".
LINKAGE __global__ void scale(float* data, float factor) {
    data[threadIdx.x] *= factor;
}
