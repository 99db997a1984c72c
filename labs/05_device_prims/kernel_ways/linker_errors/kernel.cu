// A kernel for a static library. It calls a device function of another file.
extern __device__ int twice(int x);

__global__ void double_all(int* data) {
    data[threadIdx.x] = twice(data[threadIdx.x]);
}

void launch_double_all(int* data) {
    double_all<<<1, 32>>>(data);
}
