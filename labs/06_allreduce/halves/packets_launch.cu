#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/launches.hpp"
#include "labs/06_allreduce/halves/packets.hpp"

namespace symm {

void launch_reduce_scatter_packets(CUstream stream, LaunchShape shape, DataType type,
                                   const ScratchCall& call) {
    launch_for<ReduceScatterPackets>(stream, shape, type, call.ranks, call);
}

void launch_all_gather_packets(CUstream stream, LaunchShape shape, const ScratchCall& call) {
    launch_for<AllGatherPackets, Types::kBytes>(stream, shape, DataType::kUint8, call.ranks, call);
}

unsigned halves_resident_blocks(DataType type, int ranks, unsigned threads) {
    return std::min(
        resident_blocks_for<ReduceScatterPackets>(type, ranks, threads),
        resident_blocks_for<AllGatherPackets, Types::kBytes>(DataType::kUint8, ranks, threads));
}

}  // namespace symm
