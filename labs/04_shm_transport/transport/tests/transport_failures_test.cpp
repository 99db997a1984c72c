// Errors of ShmTransport: a peer, the numbers, the options, a driver call.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

#include "common/tests/run_as.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/03_ipc/tests/fail_each_call.hpp"
#include "labs/04_shm_transport/host_memory/tests/segment_counts.hpp"
#include "labs/04_shm_transport/transport/tests/transport_test.hpp"

namespace symm {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(ShmTransport, NamesAPeerThatNeverSends) {
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        TransportOptions options = small_slots();
        options.limit = 200ms;
        OneOfTwo side(rank, options);
        if (rank.rank() == 1) {
            side.receive(1000);
            const std::string said = text_thrown_by([&] { side.finish(); });
            EXPECT_THAT(said, HasSubstr("rank 1 waited 0.2 s in a kernel for a filled FIFO slot "
                                        "from rank 0: expected 1, saw 0"));
            // The sides no longer agree on their step: the transport stays broken, and says why.
            EXPECT_EQ(text_thrown_by([&] { side.send(1); }), said);
            EXPECT_EQ(text_thrown_by([&] { side.finish(); }), said);
        }
        rank.bootstrap().barrier("end");
    });
}

// On one device, where freeing memory waits for the kernels of all ranks (CMakeLists.txt runs this
// with one): the kernel of rank 0 waits for rank 1, so rank 1 has to tell it before it frees
// anything.
TEST(ShmTransport, ARankThatThrowsTellsTheOthersBeforeItFreesMemory) {
    const auto start = std::chrono::steady_clock::now();
    const std::string error = error_of(ranks_of_this_test(2, RankMode::kThread), [](Rank& rank) {
        TransportOptions options = small_slots();
        options.limit = 60s;
        OneOfTwo side(rank, options);
        side.receive(1000);
        if (rank.rank() == 1) {
            throw std::runtime_error("cause");
        }
        side.finish();
    });
    EXPECT_EQ(error, "rank 1 failed: cause");
    EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

TEST(ShmTransport, RefusesWhatItCannotDoOnAllRanks) {
    run_as(RankMode::kThread, 2, [&](Rank& rank) {
        const int peer = 1 - rank.rank();
        const bool odd_one = rank.rank() == 1;
        const auto expect_refused = [&](int sender, const auto& change) {
            TransportOptions options = small_slots();
            if (odd_one) {
                change(options);
            }
            EXPECT_ANY_THROW(ShmTransport(rank, {&sender, 1}, options)) << rank.rank();
        };
        expect_refused(odd_one ? 2 : peer, [](TransportOptions&) {});
        expect_refused(odd_one ? -1 : peer, [](TransportOptions&) {});
        expect_refused(peer, [](TransportOptions& options) { options.slot_bytes = 100; });
        expect_refused(peer, [](TransportOptions& options) { options.channels = 1000; });
        expect_refused(peer, [](TransportOptions& options) { options.staging_bytes = 100; });
        expect_refused(peer, [](TransportOptions& options) { options.limit = 0s; });
        // The bootstrap can still be used: the next transport is made, and refuses peers it does
        // not know.
        const std::span<const int> nobody;
        ShmTransport transport(rank, odd_one ? std::span(&peer, 1) : nobody, small_slots());
        const Buffers buffers(rank);
        EXPECT_THROW(transport.receive(buffers.from(odd_one ? 1 : peer, 1), buffers.stream.get()),
                     std::invalid_argument);
        EXPECT_THROW(transport.send(buffers.to(7, 1), buffers.stream.get()), std::invalid_argument);
        const CUdeviceptr data = buffers.to(peer, 1).data;
        for (const Transfer& impossible : {Transfer{peer, 0, 8}, Transfer{peer, data, ~data}}) {
            EXPECT_THAT(text_thrown_by([&] {
                            odd_one ? transport.receive(impossible, buffers.stream.get())
                                    : transport.send(impossible, buffers.stream.get());
                        }),
                        HasSubstr("there is no memory of"));
        }
    });
}

// The proxy's copy fails: its kernel ends at once, and the error is the copy's.
TEST(ShmTransport, SaysWhyItsProxyFailed) {
    SYMM_NEEDS(is_emulated());
    run_as(RankMode::kProcess, 2, [](Rank& rank) {
        TransportOptions options = small_slots();
        options.proxy = ProxySide::kReceiver;
        OneOfTwo side(rank, options);
        if (rank.rank() == 1) {
            emu::fail_call("cuMemcpyAsync", 3, CUDA_ERROR_ILLEGAL_ADDRESS);
        }
        rank.bootstrap().barrier("begin");  // the proxy copies as soon as rank 0 has sent
        if (rank.rank() == 0) {
            side.send(2000);  // fits into the slots
            side.finish();
        } else {
            side.receive(2000);
            const std::string said = text_thrown_by([&] { side.finish(); });
            EXPECT_THAT(said, HasSubstr("the proxy of the transport failed: cuMemcpyAsync(size="));
            EXPECT_THAT(said, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
        }
        rank.bootstrap().barrier("end");
    });
}

TEST(ShmTransport, TakesPosixWhereOneRankAsksForIt) {
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        const int peer = 1 - rank.rank();
        const ShmTransport transport(
            rank, {&peer, 1}, small_slots(rank.rank() == 1 ? HostPath::kPosix : HostPath::kCuMem));
        EXPECT_EQ(transport.path().path, HostPath::kPosix);
        EXPECT_EQ(transport.path().why_not_cumem, "rank 1: POSIX was asked for");
    });
}

using FailingTransport = Transport;
INSTANTIATE_TEST_SUITE_P(Ways, FailingTransport, kWays, name_of_way);

TEST_P(FailingTransport, FailsOnAllRanksWhereAnyCallFailsOnOne) {
    SYMM_NEEDS(is_emulated());
    run_as(GetParam().mode, 2, [](Rank& rank) {
        rank.bootstrap().barrier("start");
        const SegmentCounts segments = segment_counts();
        rank.bootstrap().barrier("counted");
        fail_each_call(rank, 1, {"a transport", [](Rank& rank) {
                                     const int peer = 1 - rank.rank();
                                     return std::make_shared<ShmTransport>(
                                         rank, std::span(&peer, 1), small_slots(GetParam().path));
                                 }});
        EXPECT_EQ(segment_counts(), segments);
        rank.bootstrap().barrier("looked");
    });
}

}  // namespace
}  // namespace symm
