// The smallest program that uses the library. Two ranks, threads of this program, add up one buffer
// from each, and both check the sums.

#include <cstdio>
#include <stdexcept>
#include <symm/symm.hpp>
#include <vector>

namespace {

void add_up(symm::Rank& rank) {
    constexpr std::size_t kCount = 1000;
    symm::Communicator communicator(rank);
    const symm::Stream stream;

    // A window is memory that all ranks can reach. Rank 0's input is all ones, rank 1's all twos.
    const CUdeviceptr in = communicator.allocate(kCount * sizeof(float));
    const CUdeviceptr out = communicator.allocate(kCount * sizeof(float));
    std::vector<float> values(kCount, static_cast<float>(rank.rank() + 1));
    symm::copy_to_device(in, values.data(), kCount * sizeof(float));

    communicator.all_reduce(in, out, kCount, symm::DataType::kFloat, symm::ReduceOp::kSum,
                            stream.get());
    communicator.synchronize(stream, "the AllReduce");

    symm::copy_to_host(values.data(), out, kCount * sizeof(float));
    for (const float value : values) {
        if (value != 3.0F) {
            throw std::runtime_error("a sum is wrong");
        }
    }
    rank.headline("{} sums of {} ranks are right: 1 + 2 = {}", kCount, rank.size(), values[0]);
}

}  // namespace

int main() {
    try {
        return symm::run_ranks({.ranks = 2, .mode = symm::RankMode::kThread}, add_up);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
