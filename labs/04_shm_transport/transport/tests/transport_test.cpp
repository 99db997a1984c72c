// ShmTransport between ranks that are threads or processes, over both paths: all data arrives.

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "common/cuda/check.hpp"
#include "common/cuda/graph.hpp"
#include "common/tests/run_as.hpp"
#include "common/tests/sanitized.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"
#include "labs/04_shm_transport/host_memory/tests/segment_counts.hpp"
#include "labs/04_shm_transport/transport/tests/transport_test.hpp"

namespace symm {
namespace {

using namespace testing;

std::vector<int> all_but(const Rank& rank) {
    std::vector<int> others;
    for (int peer = 0; peer < rank.size(); ++peer) {
        if (peer != rank.rank()) {
            others.push_back(peer);
        }
    }
    return others;
}

void ring(Rank& rank, const TransportOptions& options) {
    const int next = (rank.rank() + 1) % rank.size();
    const int previous = (rank.rank() + rank.size() - 1) % rank.size();
    ShmTransport transport(rank, {&previous, 1}, options);
    EXPECT_EQ(transport.path().path, options.path.value());
    Buffers buffers(rank);
    unsigned message = 0;
    for (const std::size_t bytes : {1, 255, 256, 257, 4096, 4097, 20'001}) {
        buffers.fill(rank.rank(), ++message);
        transport.send_receive(buffers.to(next, bytes), buffers.from(previous, bytes),
                               buffers.stream.get());
        transport.finish(buffers.stream);
        buffers.expect(previous, message, bytes);
    }
}

INSTANTIATE_TEST_SUITE_P(Ways, Transport, kWays, name_of_way);

// By kernels, and by the copy engine on either side or both, with the slots near either side.
TEST_P(Transport, MovesMessagesOfAnySizeRoundARing) {
    run_as(GetParam().mode, 3, [](Rank& rank) {
        for (const ProxySide proxy :
             {ProxySide::kNone, ProxySide::kSender, ProxySide::kReceiver, ProxySide::kBoth}) {
            TransportOptions options = small_slots(GetParam().path);
            options.proxy = proxy;
            options.locality =
                proxy == ProxySide::kSender ? Locality::kSender : Locality::kReceiver;
            ring(rank, options);
        }
    });
}

TEST_P(Transport, LeavesNothingBehind) {
    run_as(GetParam().mode, 2, [](Rank& rank) {
        rank.bootstrap().barrier("before");
        const emu::Inventory inventory = is_emulated() ? emu::inventory() : emu::Inventory{};
        const SegmentCounts segments = segment_counts();
        rank.bootstrap().barrier("counted");
        for (int round = 0; round < 20; ++round) {
            const int peer = 1 - rank.rank();
            TransportOptions options = small_slots(GetParam().path);
            options.proxy = static_cast<ProxySide>(round % 4);
            const ShmTransport transport(rank, {&peer, 1}, options);
        }
        rank.bootstrap().barrier("after");
        EXPECT_EQ(segment_counts(), segments);
        if (is_emulated()) {
            EXPECT_EQ(emu::inventory(), inventory);
        }
        rank.bootstrap().barrier("looked");
    });
}

// A user may be capturing, in any thread and in the strictest mode, when a transport is made.
TEST(ShmTransport, CanBeMadeWhileAnotherThreadCaptures) {
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        const int peer = 1 - rank.rank();
        TransportOptions options = small_slots();
        options.proxy = ProxySide::kBoth;
        Buffers buffers(rank);
        const Stream captured;
        cu_check(cuStreamBeginCapture(captured.get(), CU_STREAM_CAPTURE_MODE_GLOBAL), "begin");
        rank.bootstrap().barrier("both capture");
        std::optional<ShmTransport> transport(std::in_place, rank, std::span(&peer, 1), options);
        transport->send_receive(buffers.to(peer, 3000), buffers.from(peer, 3000), captured.get());
        rank.bootstrap().barrier("both queued");
        CUgraph graph = nullptr;
        EXPECT_EQ(cuStreamEndCapture(captured.get(), &graph), CUDA_SUCCESS);
        EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
        rank.bootstrap().barrier("no capture");  // the transport's end waits for the whole context
    });
}

// Rank 0 asks for another shape, place and proxy than rank 1: each connection takes its receiver's
// shape and place, and each side its own proxy.
TEST(ShmTransport, TakesEachReceiversShapeAndPlaceAndEachRanksProxy) {
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        const bool first = rank.rank() == 0;
        TransportOptions options = small_slots(HostPath::kPosix);
        options.slot_bytes = first ? 128 : 1024;
        options.channels = first ? 3 : 1;
        options.locality = first ? Locality::kSender : Locality::kReceiver;
        options.proxy = first ? ProxySide::kSender : ProxySide::kNone;
        ring(rank, options);
    });
}

TEST(ShmTransport, SendsFromItsStagingMemory) {
    for (const ProxySide proxy : {ProxySide::kNone, ProxySide::kBoth}) {
        run_as(RankMode::kThread, 2, [=](Rank& rank) {
            TransportOptions options = small_slots();
            options.staging_bytes = 8192;
            options.proxy = proxy;
            OneOfTwo side(rank, options);
            const CUdeviceptr staging = side.transport.staging(side.peer);
            for (unsigned message = 1; message <= 4; ++message) {
                side.buffers.fill(rank.rank(), message);
                cu_check(cuMemcpyAsync(staging, side.buffers.source.base(), 8000, side.stream()),
                         "cuMemcpyAsync()");
                side.transport.send_receive({side.peer, staging, 8000},
                                            side.buffers.from(side.peer, 8000), side.stream());
                side.finish();
                side.buffers.expect(side.peer, message, 8000);
            }
            EXPECT_THROW(side.transport.staging(7), std::invalid_argument);
        });
    }
}

// After a rank's kernels, its proxy may still have to hand over what they sent: finish() waits.
TEST(ShmTransport, ProxiesHandOverWhatWasSentBeforeTheSenderEnds) {
    run_as(RankMode::kProcess, 2, [](Rank& rank) {
        TransportOptions options = small_slots();
        options.proxy = ProxySide::kSender;
        std::optional<OneOfTwo> side(std::in_place, rank, options);
        side->buffers.fill(rank.rank(), 1);
        if (rank.rank() == 0) {
            side->send(2000);
            side->finish();
            side.reset();
            rank.bootstrap().barrier("sent");
        } else {
            rank.bootstrap().barrier("sent");
            side->receive(2000);
            side->finish();
            side->buffers.expect(0, 1, 2000);
        }
    });
}

TEST(ShmTransport, MovesMessagesBetweenAllPairs) {
    run_as(RankMode::kThread, 4, [](Rank& rank) {
        ShmTransport transport(rank, all_but(rank), small_slots());
        Buffers buffers(rank);
        unsigned message = 0;
        // Each with the ranks `distance` before and after it: a permutation, so no rank waits in
        // vain.
        for (int distance = 1; distance < rank.size(); ++distance) {
            const int to = (rank.rank() + distance) % rank.size();
            const int from = (rank.rank() + rank.size() - distance) % rank.size();
            const std::size_t bytes = 3000 + 100 * static_cast<std::size_t>(distance);
            buffers.fill(rank.rank(), ++message);
            transport.send_receive(buffers.to(to, bytes), buffers.from(from, bytes),
                                   buffers.stream.get());
            transport.finish(buffers.stream);
            buffers.expect(from, message, bytes);
        }
    });
}

// All calls, and destruction with transfers in flight.
TEST_P(Transport, ServesAThreadWithoutAContext) {
    run_as(GetParam().mode, 2, [](Rank& rank) {
        const int peer = 1 - rank.rank();
        Buffers buffers(rank);
        buffers.fill(rank.rank(), 1);
        CUcontext current = rank.gpu().context();
        std::string error;
        std::thread([&] {
            error = text_thrown_by([&] {
                ShmTransport transport(rank, {&peer, 1}, small_slots(GetParam().path));
                for (int i = 0; i < 20; ++i) {
                    transport.send_receive(buffers.to(peer, 20'001), buffers.from(peer, 20'001),
                                           buffers.stream.get());
                    if (i == 0) {
                        transport.finish(buffers.stream);
                    }
                }
            });
            cuCtxGetCurrent(&current);
        }).join();
        EXPECT_EQ(error, "");
        EXPECT_EQ(current, nullptr) << "a call left another context current";
        EXPECT_TRUE(buffers.stream.finished());
        buffers.expect(peer, 1, 20'001);
        rank.bootstrap().barrier("destroyed");
    });
}

// Each rank makes other calls that are refused; the transfers after them are right.
TEST(ShmTransport, KeepsItsCountersWhereItRefusesACall) {
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        OneOfTwo side(rank);
        auto& [self, peer, buffers, transport] = side;
        std::minstd_rand all(1);  // draws the same on all ranks
        std::minstd_rand own(static_cast<unsigned>(rank.rank()) + 2);
        for (unsigned message = 1; message <= (kSanitized ? 20u : 100u); ++message) {
            const CUstream stream = side.stream();
            for (auto refused = own() % 5; refused > 0; --refused) {
                const int unknown = rank.rank() + 2 * static_cast<int>(own() % 2);  // itself too
                const Transfer to = buffers.to(own() % 2 == 0 ? peer : unknown, 1000);
                const Transfer from = buffers.from(to.peer == peer ? unknown : peer, 1000);
                EXPECT_THROW(transport.send_receive(to, from, stream), std::invalid_argument);
                EXPECT_THROW(transport.send(buffers.to(unknown, 9), stream), std::invalid_argument);
            }
            side.exchange(message, all() % 5000);
        }
    });
}

TEST(ShmTransport, RefusesToFinishAStreamThatIsBeingCapturedAndReplaysIt) {
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        OneOfTwo side(rank);
        const Graph graph = Graph::capture(side.stream(), [&] {
            side.send_receive(9000);
            EXPECT_THROW(side.finish(), std::invalid_argument);
        });
        for (unsigned message = 1; message <= 2; ++message) {
            side.buffers.fill(rank.rank(), message);
            graph.launch(side.stream());
            side.finish();
            side.buffers.expect(side.peer, message, 9000);
        }
    });
}

TEST(ShmTransport, MovesNothingWhereNothingIsAskedFor) {
    run_as(RankMode::kThread, 1, [](Rank& rank) {
        const int self = 0;
        ShmTransport transport(rank, {&self, 1}, small_slots());
        Buffers buffers(rank);
        buffers.fill(0, 1);
        transport.send(buffers.to(0, 0), buffers.stream.get());
        transport.receive(buffers.from(0, 0), buffers.stream.get());
        transport.finish(buffers.stream);
        buffers.expect(0, 1, 0);
        // A rank may send to itself, too.
        transport.send_receive(buffers.to(0, 5000), buffers.from(0, 5000), buffers.stream.get());
        transport.finish(buffers.stream);
        buffers.expect(0, 1, 5000);
    });
}

}  // namespace
}  // namespace symm
