#include "labs/06_allreduce/two_shot.hpp"

#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"
#include "labs/06_allreduce/dispatch.hpp"
#include "labs/06_allreduce/launches.hpp"

namespace symm {

void launch_two_shot(CUstream stream, Shape shape, const CallArguments& call,
                     const TwoShotArguments& where) {
    dispatch(call.type, call.ranks, [&](auto element, auto ranks) {
        using Element = decltype(element);
        using Storage = typename Element::Storage;
        launch(stream, shape.blocks, shape.threads,
               TwoShot<Element, decltype(ranks)::value>{
                   {reinterpret_cast<const Storage*>(where.in_of_rank_0), where.in_stride},
                   {reinterpret_cast<Storage*>(where.out_of_rank_0), where.out_stride},
                   call.count,
                   {where.barrier_of_rank_0, where.barrier_stride, call.rank, call.ranks},
                   call.timeout,
                   where.in_of_rank_0 % 16 == 0 && where.out_of_rank_0 % 16 == 0});
    });
}

unsigned two_shot_resident_blocks(DataType type, int ranks, unsigned threads) {
    unsigned blocks = 0;
    dispatch(type, ranks, [&](auto element, auto number) {
        blocks = resident_blocks<TwoShot<decltype(element), decltype(number)::value>>(threads);
    });
    return blocks;
}

}  // namespace symm
