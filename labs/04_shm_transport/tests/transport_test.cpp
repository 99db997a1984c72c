// ShmTransport between ranks that are threads or processes, over both paths.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>

#include "common/cuda/copy.hpp"
#include "common/cuda/graph.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"
#include "labs/02_access/pattern.hpp"
#include "labs/03_ipc/tests/run_as.hpp"
#include "labs/04_shm_transport/tests/segment_counts.hpp"
#include "labs/04_shm_transport/transport.hpp"

namespace symm {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::size_t kMost = 64 * 1024;

// Small, so that few bytes go round the slots often.
TransportOptions small_slots(std::optional<HostPath> path = {}) {
    TransportOptions options;
    options.slot_bytes = 256;
    options.threads = 16;
    options.path = path;
    return options;
}

// A rank's buffers, and what lies in them.
struct Buffers {
    explicit Buffers(const Rank& rank)
        : source(rank.device(), kMost), destination(rank.device(), kMost) {}

    static unsigned char byte(int sender, unsigned message, std::size_t index) {
        const auto seed = static_cast<std::uint32_t>(sender) * 1000 + message;
        return static_cast<unsigned char>(pattern_word(seed, index) >> 17);
    }
    void fill(int sender, unsigned message) {
        std::vector<unsigned char> data(kMost);
        for (std::size_t i = 0; i < kMost; ++i) {
            data[i] = byte(sender, message, i);
        }
        copy_to_device(source.base(), data.data(), kMost);
        std::fill(data.begin(), data.end(), 0xa5);
        copy_to_device(destination.base(), data.data(), kMost);
    }
    // The message from `sender` and, behind it, nothing.
    void expect(int sender, unsigned message, std::size_t bytes) const {
        std::vector<unsigned char> data(kMost);
        copy_to_host(data.data(), destination.base(), kMost);
        for (std::size_t i = 0; i < kMost; ++i) {
            const unsigned char right = i < bytes ? byte(sender, message, i) : 0xa5;
            ASSERT_EQ(data[i], right) << "byte " << i << " of message " << message << ", " << bytes
                                      << " bytes from rank " << sender;
        }
    }
    Transfer to(int peer, std::size_t bytes) const { return {peer, source.base(), bytes}; }
    Transfer from(int peer, std::size_t bytes) const { return {peer, destination.base(), bytes}; }

    DeviceBuffer source;
    DeviceBuffer destination;
    Stream stream;
};

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

struct Way {
    RankMode mode;
    HostPath path;
};
void PrintTo(const Way& way, std::ostream* out) {
    *out << name_of(way.mode) << ", " << name_of(way.path);
}
class Transport : public ::testing::TestWithParam<Way> {
protected:
    void SetUp() override {
        ASSERT_GT(device_count(), 0);
        if (GetParam().path == HostPath::kCuMem && probe_host_path(0).path != HostPath::kCuMem) {
            GTEST_SKIP() << probe_host_path(0).why_not_cumem;
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Ways, Transport,
                         ::testing::Values(Way{RankMode::kThread, HostPath::kCuMem},
                                           Way{RankMode::kThread, HostPath::kPosix},
                                           Way{RankMode::kProcess, HostPath::kCuMem},
                                           Way{RankMode::kProcess, HostPath::kPosix}),
                         [](const auto& info) {
                             return std::string(name_of(info.param.mode)) + "_" +
                                    std::string(name_of(info.param.path));
                         });

TEST_P(Transport, MovesMessagesOfAnySizeRoundARing) {
    run_as(GetParam().mode, 3, [](Rank& rank) { ring(rank, small_slots(GetParam().path)); });
}

TEST_P(Transport, LeavesNothingBehind) {
    run_as(GetParam().mode, 2, [](Rank& rank) {
        rank.rendezvous().barrier("before");
        const emu::Inventory inventory = is_emulated() ? emu::inventory() : emu::Inventory{};
        const SegmentCounts segments = segment_counts();
        rank.rendezvous().barrier("counted");
        for (int round = 0; round < 20; ++round) {
            const int peer = 1 - rank.rank();
            const ShmTransport transport(rank, {&peer, 1}, small_slots(GetParam().path));
        }
        rank.rendezvous().barrier("after");
        EXPECT_EQ(segment_counts(), segments);
        if (is_emulated()) {
            EXPECT_EQ(emu::describe(emu::inventory()), emu::describe(inventory));
        }
        rank.rendezvous().barrier("looked");
    });
}

TEST(ShmTransport, MovesMessagesBetweenAllPairs) {
    run_as(RankMode::kThread, 4, [](Rank& rank) {
        ShmTransport transport(rank, all_but(rank), small_slots());
        Buffers buffers(rank);
        unsigned message = 0;
        // Each with the rank `distance` before and behind it: a permutation, so nobody waits in
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

TEST(ShmTransport, SendsAreMetByReceivesInOrder) {
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        const int peer = 1 - rank.rank();
        ShmTransport transport(rank, {&peer, 1}, small_slots());
        Buffers buffers(rank);
        buffers.fill(rank.rank(), 1);
        const auto part = [](CUdeviceptr base, int i) {
            return base + static_cast<CUdeviceptr>(i) * 3001;
        };
        for (int i = 0; i < 10; ++i) {
            if (rank.rank() == 0) {
                transport.send({1, part(buffers.source.base(), i), 3001}, buffers.stream.get());
            } else {
                transport.receive({0, part(buffers.destination.base(), i), 3001},
                                  buffers.stream.get());
            }
        }
        transport.finish(buffers.stream);
        if (rank.rank() == 1) {
            buffers.expect(0, 1, 30'010);
        }
    });
}

TEST(ShmTransport, CanBeReplayedInAGraph) {
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        const int peer = 1 - rank.rank();
        ShmTransport transport(rank, {&peer, 1}, small_slots());
        Buffers buffers(rank);
        const Graph graph = Graph::capture(buffers.stream.get(), [&] {
            transport.send_receive(buffers.to(peer, 9000), buffers.from(peer, 9000),
                                   buffers.stream.get());
        });
        for (unsigned message = 1; message <= 4; ++message) {
            buffers.fill(rank.rank(), message);
            graph.launch(buffers.stream.get());
            transport.finish(buffers.stream);
            buffers.expect(peer, message, 9000);
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

TEST(ShmTransport, TakesEachReceiversOwnShape) {
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        const int peer = 1 - rank.rank();
        TransportOptions options = small_slots();
        options.slot_bytes = rank.rank() == 0 ? 128 : 1024;
        options.channels = rank.rank() == 0 ? 3 : 1;
        ShmTransport transport(rank, {&peer, 1}, options);
        EXPECT_EQ(transport.blocks(peer, 5000), rank.rank() == 0 ? 1U : 3U);
        Buffers buffers(rank);
        buffers.fill(rank.rank(), 1);
        transport.send_receive(buffers.to(peer, 5001), buffers.from(peer, 5001),
                               buffers.stream.get());
        transport.finish(buffers.stream);
        buffers.expect(peer, 1, 5001);
    });
}

TEST(ShmTransport, NamesAPeerThatNeverSends) {
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        const int peer = 1 - rank.rank();
        TransportOptions options = small_slots();
        options.limit = 200ms;
        ShmTransport transport(rank, {&peer, 1}, options);
        Buffers buffers(rank);
        if (rank.rank() == 1) {
            transport.receive(buffers.from(0, 1000), buffers.stream.get());
            const auto failure = [&](const auto& call) -> std::string {
                try {
                    call();
                } catch (const std::exception& error) {
                    return error.what();
                }
                return "no failure";
            };
            const std::string said = failure([&] { transport.finish(buffers.stream); });
            EXPECT_THAT(said, HasSubstr("rank 1 waited 0.2 s in a kernel for a filled FIFO slot of "
                                        "rank 0: expected 1, saw 0"));
            // The sides no longer agree on where they are: the transport stays broken, and says
            // why.
            EXPECT_EQ(failure([&] { transport.send(buffers.to(0, 1), buffers.stream.get()); }),
                      said);
            EXPECT_EQ(failure([&] { transport.finish(buffers.stream); }), said);
        }
        rank.rendezvous().barrier("end");
    });
}

TEST(ShmTransport, NamesBothNumbersOfBytesWhereTheyDiffer) {
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        const int peer = 1 - rank.rank();
        ShmTransport transport(rank, {&peer, 1}, small_slots());
        Buffers buffers(rank);
        if (rank.rank() == 0) {
            transport.send(buffers.to(1, 200), buffers.stream.get());
            transport.finish(buffers.stream);
        } else {
            transport.receive(buffers.from(0, 201), buffers.stream.get());
            try {
                transport.finish(buffers.stream);
                ADD_FAILURE() << "nothing was thrown";
            } catch (const std::exception& error) {
                EXPECT_STREQ(
                    error.what(),
                    "rank 1 expected 201 more bytes of a message from rank 0, which sends "
                    "200: both sides must name the same number of bytes, in the same order "
                    "of calls");
            }
        }
        rank.rendezvous().barrier("end");
    });
}

TEST(ShmTransport, RefusesWhatItCannotDoOnAllRanks) {
    const auto refused = [](Rank& rank, int sender, const TransportOptions& options) {
        EXPECT_ANY_THROW(ShmTransport(rank, {&sender, 1}, options)) << rank.rank();
    };
    run_as(RankMode::kThread, 2, [&](Rank& rank) {
        const int peer = 1 - rank.rank();
        const bool odd_one = rank.rank() == 1;
        refused(rank, odd_one ? 2 : peer, small_slots());
        refused(rank, odd_one ? -1 : peer, small_slots());
        TransportOptions options = small_slots();
        options.slot_bytes = odd_one ? 100 : 128;
        refused(rank, peer, options);
        options = small_slots();
        options.channels = odd_one ? 1000 : 1;
        refused(rank, peer, options);
        options = small_slots(odd_one ? HostPath::kPosix : HostPath::kCuMem);
        refused(rank, peer, options);
        // The rendezvous is well: the next transport is made, and refuses peers it does not know.
        const std::span<const int> nobody;
        ShmTransport transport(rank, odd_one ? std::span(&peer, 1) : nobody, small_slots());
        EXPECT_EQ(static_cast<bool>(transport.segment()), odd_one);
        const Buffers buffers(rank);
        EXPECT_THROW(transport.receive(buffers.from(odd_one ? 1 : peer, 1), buffers.stream.get()),
                     std::invalid_argument);
        EXPECT_THROW(transport.send(buffers.to(7, 1), buffers.stream.get()), std::invalid_argument);
    });
}

TEST(ShmTransport, FallsBackTogetherWhereOneRankCannot) {
    if (!is_emulated()) {
        GTEST_SKIP() << "only the emulated driver fails on demand";
    }
    run_as(RankMode::kProcess, 3, [](Rank& rank) {
        if (rank.rank() == 1) {
            emu::fail_call("cuMemCreate", 1, CUDA_ERROR_NOT_PERMITTED);
        }
        const HostPathChoice choice = agree_on_host_path(rank);
        EXPECT_EQ(choice.path, HostPath::kPosix);
        EXPECT_THAT(choice.why_not_cumem, HasSubstr("rank 1: cuMemCreate"));
        EXPECT_THAT(choice.why_not_cumem, HasSubstr("CUDA_ERROR_NOT_PERMITTED"));
    });
}

TEST_P(Transport, FailsOnAllRanksWhereAnyCallFailsOnOne) {
    if (!is_emulated()) {
        GTEST_SKIP() << "only the emulated driver fails on demand";
    }
    run_as(GetParam().mode, 2, [](Rank& rank) {
        const int peer = 1 - rank.rank();
        const auto build = [&] {
            const ShmTransport transport(rank, {&peer, 1}, small_slots(GetParam().path));
        };
        build();
        constexpr std::array kCuMem{"cuMemCreate",    "cuMemAddressReserve",
                                    "cuMemMap",       "cuMemSetAccess",
                                    "cuMemHostAlloc", "cuMemGetAllocationGranularity"};
        constexpr std::array kPosix{"cuMemHostRegister", "cuMemHostGetDevicePointer",
                                    "cuMemHostAlloc"};
        const std::span<const char* const> calls = GetParam().path == HostPath::kCuMem
                                                       ? std::span<const char* const>(kCuMem)
                                                       : std::span<const char* const>(kPosix);
        for (const char* call : calls) {
            rank.rendezvous().barrier("next call");
            const emu::Inventory before = emu::inventory();
            const SegmentCounts segments = segment_counts();
            rank.rendezvous().barrier("counted");
            int failed = 0;
            for (bool again = true; again && failed < 20;) {
                if (rank.rank() == 1) {
                    emu::fail_call(call, failed + 1, CUDA_ERROR_OUT_OF_MEMORY);
                }
                rank.rendezvous().barrier("armed");
                std::string error;
                try {
                    build();
                } catch (const std::exception& failure) {
                    error = failure.what();
                }
                rank.rendezvous().barrier("tried");
                if (rank.rank() == 1) {
                    emu::clear_failures();
                }
                const auto errors = rank.rendezvous().allgather_text("errors", error);
                for (const std::string& one : errors) {
                    EXPECT_EQ(one.empty(), error.empty()) << "all ranks fail, or none: " << call;
                }
                if (!error.empty()) {
                    EXPECT_THAT(error, HasSubstr(call));
                    ++failed;
                }
                again = !error.empty();
                EXPECT_EQ(emu::describe(emu::inventory()), emu::describe(before)) << call;
                EXPECT_EQ(segment_counts(), segments) << call;
                rank.rendezvous().barrier("looked");
            }
            EXPECT_GT(failed, 0) << call;
            EXPECT_LT(failed, 20) << call;
        }
    });
}

}  // namespace
}  // namespace symm
