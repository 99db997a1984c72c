// A device function that a kernel of another file calls.
__device__ int twice(int x) {
    return 2 * x;
}
