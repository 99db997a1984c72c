#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"
#include "labs/06_allreduce/dispatch.hpp"
#include "labs/06_allreduce/launches.hpp"

namespace symm {

void launch_one_shot(CUstream stream, Shape shape, const CallArguments& call,
                     const OneShotArguments& where) {
    dispatch(call.type, call.ranks, [&](auto element, auto ranks) {
        using Element = decltype(element);
        using Storage = typename Element::Storage;
        launch(
            stream, shape.blocks, shape.threads,
            OneShot<Element, decltype(ranks)::value>{
                reinterpret_cast<const Storage*>(where.in), reinterpret_cast<Storage*>(where.out),
                call.count, where.memory, where.scratch, where.stride, where.packets_per_bank,
                call.timeout, call.rank, where.in % 8 == 0 && where.out % 8 == 0});
    });
}

unsigned one_shot_resident_blocks(DataType type, int ranks, unsigned threads) {
    unsigned blocks = 0;
    dispatch(type, ranks, [&](auto element, auto number) {
        blocks = resident_blocks<OneShot<decltype(element), decltype(number)::value>>(threads);
    });
    return blocks;
}

}  // namespace symm
