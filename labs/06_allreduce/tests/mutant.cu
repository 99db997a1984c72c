#include "labs/06_allreduce/tests/mutant.hpp"

#include "common/cuda/launch.hpp"
#include "labs/06_allreduce/two_shot.hpp"

namespace symm {
namespace {

constexpr unsigned kElements = MutantMemory::kElements;

struct Reset {
    MutantMemory* memory;
    __host__ __device__ void operator()(const simt::ThreadBlock&) const {
        memory->barrier = BarrierMemory{};
    }
};

struct Prepare {
    MutantMemory* memory;
    int rank;
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        for (unsigned i = block.thread_rank(); i < kElements; i += block.size()) {
            memory->in[i] = static_cast<float>(rank + 1) * static_cast<float>(i);
            memory->out[i] = -1;
        }
    }
};

struct Compare {
    const MutantMemory* memory;
    unsigned* wrong;
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        for (unsigned i = block.thread_rank(); i < kElements; i += block.size()) {
            if (memory->out[i] != 3.0F * static_cast<float>(i)) {
                simt::fetch_add(wrong, 1U, simt::Order::kRelaxed);
            }
        }
    }
};

}  // namespace

void launch_reset(CUstream stream, MutantMemory* memory) {
    launch(stream, 1, 1, Reset{memory});
}

void launch_prepare(CUstream stream, MutantMemory* memory, int rank) {
    launch(stream, 1, 8, Prepare{memory, rank});
}

void launch_reduce(CUstream stream, MutantMemory* first, std::size_t stride, int rank,
                   const simt::Timeout& timeout) {
    launch(stream, 2, 8,
           TwoShot<Float, 2>{{first->in, stride},
                             {first->out, stride},
                             kElements - 1,
                             {&first->barrier, stride, rank, 2},
                             timeout,
                             true});
}

void launch_compare(CUstream stream, const MutantMemory* memory, unsigned* wrong) {
    launch(stream, 1, 8, Compare{memory, wrong});
}

}  // namespace symm
