// Structs of several sizes, copied into shared memory by groups of several kinds; and the start of
// a kernel, which makes three copies at once.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/pinned_memory.hpp"
#include "common/cuda/stream.hpp"
#include "common/simt/warp.hpp"
#include "labs/05_device_prims/shared_work/load_parallel.hpp"
#include "labs/05_device_prims/shared_work/work_batch.hpp"

namespace symm {
namespace {

constexpr std::uint32_t kPoison = 0xa5a5a5a5U;

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

// One piece from the parameters and three from memory, by the whole block or by its second and
// third warp. A fourth one must stay as it is.
template <unsigned kPacks>
struct LoadKernel {
    using P = Piece<kPacks>;
    P parameter;
    const P* memory;
    std::uint64_t* digests;  // five per block
    bool by_span;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        auto* pieces = block.shared<P>();
        for (unsigned i = block.thread_rank(); i < P::kWords; i += block.size()) {
            pieces[4].words[i] = kPoison;
        }
        if (!by_span) {
            load(block, pieces);
        } else if (block.thread_rank() >= simt::kWarpSize) {
            load(simt::WarpSpan(block, 1, 2, 1), pieces);
        }
        block.sync();
        for (unsigned i = block.thread_rank(); i < 5; i += block.size()) {
            digests[block.group_index() * 5 + i] = pieces[i].digest();
        }
    }
    template <class Group>
    __host__ __device__ void load(const Group& group, P* pieces) const {
        load_parallel(group, pieces, &parameter);
        load_parallel(group, pieces + 1, memory, 3);
    }
};

class Loads : public testing::Test {
protected:
    static constexpr unsigned kBlocks = 2;

    template <unsigned kPacks>
    void load(unsigned threads, bool by_span = false) {
        using P = Piece<kPacks>;
        const std::vector<P> pieces{P::numbered(1), P::numbered(2), P::numbered(3)};
        const DeviceMemory device_memory(3 * sizeof(P));
        copy_to_device(device_memory.address(), pieces.data(), 3 * sizeof(P));
        const PinnedMemory pinned(3 * sizeof(P));
        std::copy(pieces.begin(), pieces.end(), pinned.as<P>());
        P poison;
        std::fill_n(poison.words, P::kWords, kPoison);
        for (const P* memory : {device_memory.as<P>(), pinned.as<P>()}) {
            std::fill_n(output(), kBlocks * 5, 0);
            launch(stream_.get(), kBlocks, threads,
                   LoadKernel<kPacks>{P::numbered(9), memory, output(), by_span}, 5 * sizeof(P));
            stream_.synchronize("the kernel");
            for (unsigned block = 0; block < kBlocks; ++block) {
                const std::uint64_t* found = output() + block * 5;
                EXPECT_EQ(found[0], P::numbered(9).digest()) << threads << " threads";
                for (unsigned i = 0; i < 3; ++i) {
                    EXPECT_EQ(found[1 + i], pieces[i].digest()) << threads << " threads, " << i;
                }
                EXPECT_EQ(found[4], poison.digest()) << threads << " threads";
            }
        }
    }
    std::uint64_t* output() const { return output_.as<std::uint64_t>(); }

    Device device_{0};
    Stream stream_;
    PinnedMemory output_{1024 * sizeof(std::uint64_t)};
};

TEST_F(Loads, AreRightForAnyNumberOfThreads) {
    for (const unsigned threads : {1U, 3U, 7U, 32U, 33U, 96U}) {
        load<1>(threads);
        load<3>(threads);
        load<11>(threads);
    }
}

TEST_F(Loads, CanBeMadeByASpanOfWarps) {
    load<1>(96, true);
    load<11>(96, true);
    load<50>(96, true);
}

using Comm = Piece<3>;
using Channel = Piece<2>;
using Work = Piece<5>;
using State = BlockState<Comm, Channel, Work, 2>;

// Every thread reads all that was loaded.
struct BeginKernel {
    Comm comm;
    const Channel* channels;
    WorkBatch<Work> batch;
    std::uint64_t* digests;  // per thread

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        State& state = *block.shared<State>();
        load_args(block, state, &comm, channels + block.group_index(), batch);
        std::uint64_t digest = state.channel.digest(state.comm.digest());
        batch.for_each(block, state.work, [&](const Work& work) {
            digest = work.digest(digest);
            return true;
        });
        digests[block.grid_rank()] = digest;
    }
};

TEST_F(Loads, OfAKernelsStateAreMadeByDifferentWarps) {
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
        std::fill_n(output(), 1024, 0);
        const Comm comm = Comm::numbered(threads);
        launch(stream_.get(), kBlocks, threads,
               BeginKernel{comm, channels.as<Channel>(), batch, output()}, sizeof(State));
        stream_.synchronize("the kernel");
        for (unsigned i = 0; i < kBlocks * threads; ++i) {
            std::uint64_t expected = channels.as<Channel>()[i / threads].digest(comm.digest());
            for (unsigned item = 0; item < batch.count; ++item) {
                expected = batch.args[item].digest(expected);
            }
            ASSERT_EQ(output()[i], expected) << "thread " << i << " of " << threads;
        }
    }
}

}  // namespace
}  // namespace symm
