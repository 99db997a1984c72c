#include "common/cuda/launch.hpp"
#include "labs/03_ipc/ordered_sum.hpp"

#include <array>
#include <cmath>
#include <numeric>

namespace symm {
namespace ipc_kernels {

struct SumLanes {
    const double* values;
    std::size_t count;
    double* lanes;  // kSumLanes of them

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        for (std::size_t lane = block.grid_rank(); lane < kSumLanes; lane += block.grid_size()) {
            double sum = 0;
            for (std::size_t i = lane; i < count; i += kSumLanes) {
                sum += values[i];
            }
            lanes[lane] = sum;
        }
    }
};

}  // namespace ipc_kernels

double ordered_sum(const Gpu& gpu, CUdeviceptr at, std::size_t count) {
    static_assert(kSumLanes * sizeof(double) <= Gpu::kResultBytes);
    gpu.make_current();
    auto* lanes = static_cast<double*>(gpu.results());
    const auto [blocks, threads] = gpu.shape();
    launch(gpu.stream(), blocks, threads,
           ipc_kernels::SumLanes{reinterpret_cast<const double*>(at), count, lanes});
    gpu.wait("the sum");
    return std::accumulate(lanes, lanes + kSumLanes, 0.0);
}

double ordered_sum(std::span<const double> values) {
    std::array<double, kSumLanes> lanes{};
    for (std::size_t i = 0; i < values.size(); ++i) {
        lanes[i % kSumLanes] += values[i];
    }
    return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

double sum_example(std::size_t index) {
    const double magnitude = std::ldexp(1.0 + static_cast<double>(index % 1009) / 1009.0,
                                        static_cast<int>(index * 7 % 61) - 30);
    return index % 3 == 0 ? -magnitude : magnitude;
}

}  // namespace symm
