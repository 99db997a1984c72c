// The start of a kernel: structs of several sizes, copied into shared memory at once.

#include <gtest/gtest.h>

#include <algorithm>

#include "common/cuda/device.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/pinned_memory.hpp"
#include "common/cuda/stream.hpp"
#include "labs/05_device_prims/shared_work/load_parallel.hpp"
#include "labs/05_device_prims/shared_work/work_batch.hpp"

namespace symm {
namespace {

template <unsigned kPacks>
struct alignas(16) Piece {
    static constexpr unsigned kWords = kPacks * 4;
    std::uint32_t words[kWords];

    // No two words of a test are equal.
    static Piece numbered(std::uint32_t number) {
        Piece piece{};
        for (unsigned i = 0; i < kWords; ++i) {
            piece.words[i] = (number << 16) + i + 1;
        }
        return piece;
    }
    // A hash of the words and their places.
    __host__ __device__ std::uint64_t digest(std::uint64_t before = 0) const {
        for (const std::uint32_t word : words) {
            before = before * 31 + word;
        }
        return before;
    }
};

using Comm = Piece<3>;
using Channel = Piece<2>;
using Work = Piece<5>;
using State = BlockState<Comm, Channel, Work, 2>;

// What is loaded, and a piece after it that must stay as it is.
struct Shared {
    State state;
    Piece<1> guard;
};

// Every thread reads all that was loaded.
struct BeginKernel {
    Comm comm;
    const Channel* channels;
    WorkBatch<Work> batch;
    std::uint64_t* digests;  // per thread

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        auto& [state, guard] = *block.shared<Shared>();
        if (block.thread_rank() == 0) {
            guard = {{1, 2, 3, 4}};
        }
        load_args(block, state, &comm, channels + block.group_index(), batch);
        std::uint64_t digest = state.channel.digest(state.comm.digest());
        batch.for_each(block, state.work, [&](const Work& work) {
            digest = work.digest(digest);
            return true;
        });
        digests[block.grid_rank()] = guard.digest(digest);
    }
};

TEST(Loads, OfAKernelsStateAreMadeByDifferentWarps) {
    constexpr unsigned kBlocks = 2;
    const Device device(0);
    const Stream stream;
    const PinnedMemory memory(1024 * sizeof(std::uint64_t));
    auto* const output = memory.as<std::uint64_t>();
    const PinnedMemory channels(kBlocks * sizeof(Channel));
    WorkBatch<Work> batch{};
    batch.count = 5;
    for (unsigned i = 0; i < batch.count; ++i) {
        batch.args[i] = Work::numbered(20 + i);
    }
    for (const unsigned threads : {1U, 7U, 32U, 64U, 65U, 96U, 100U}) {
        for (unsigned block = 0; block < kBlocks; ++block) {
            channels.as<Channel>()[block] = Channel::numbered(threads * 10 + block);
        }
        std::fill_n(output, 1024, 0);
        const Comm comm = Comm::numbered(threads);
        launch(stream.get(), kBlocks, threads,
               BeginKernel{comm, channels.as<Channel>(), batch, output}, sizeof(Shared));
        stream.synchronize("the kernel");
        for (unsigned i = 0; i < kBlocks * threads; ++i) {
            std::uint64_t expected = channels.as<Channel>()[i / threads].digest(comm.digest());
            for (unsigned item = 0; item < batch.count; ++item) {
                expected = batch.args[item].digest(expected);
            }
            expected = Piece<1>{{1, 2, 3, 4}}.digest(expected);
            ASSERT_EQ(output[i], expected) << "thread " << i << " of " << threads;
        }
    }
}

}  // namespace
}  // namespace symm
