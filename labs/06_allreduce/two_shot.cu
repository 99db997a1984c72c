#include "labs/06_allreduce/two_shot.hpp"

#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"
#include "labs/06_allreduce/dispatch.hpp"
#include "labs/06_allreduce/launches.hpp"

namespace symm {

void launch_two_shot(CUstream stream, LaunchShape shape, DataType type, int ranks,
                     const TwoShotCall& call) {
    dispatch(type, ranks, [&](auto element, auto number) {
        launch(stream, shape.blocks, shape.threads,
               TwoShot<decltype(element), decltype(number)::value>{call});
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
