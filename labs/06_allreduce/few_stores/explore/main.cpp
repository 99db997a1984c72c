// The AllReduce with few stores, in every execution.

#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/explore/calls.hpp"
#include "labs/06_allreduce/few_stores/few_stores.hpp"
#include "tools/explore/explore_main.hpp"

int main(int argc, char** argv) {
    using namespace symm;
    const auto sums = [](int ranks) {
        return [=](Scene& scene) {
            const Calls calls{{ranks}, {4, 8, 4}, {.all_ones = true}};
            const auto memory = explore::symmetric_zeroed<SumMemory>(scene, ranks, "memory");
            for (int rank = 0; rank < ranks; ++rank) {
                const simt::Timeout timeout = explore::timeout_of(scene, rank);
                const auto data = buffer<std::uint32_t>(scene, "data", rank);
                auto* const call = scene.zeroed<std::uint32_t>(1, "call", rank);
                launch_calls<std::uint32_t>(scene, calls, 0, rank, data, data, timeout,
                                            [=](const ThreadBlock&, std::size_t count) {
                                                simt::Waiter waiter(timeout);
                                                sum(memory, rank, ranks, ++*call,
                                                    elements<std::uint32_t>(data), count, waiter);
                                            });
            }
        };
    };
    return explore::explore_main(argc, argv, {{"sum/2", sums(2)}, {"sum/3", sums(3)}});
}
