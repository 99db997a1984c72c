// The symmetric range on ranks that are threads and on ranks that are processes.

#include "labs/03_ipc/symmetric_range.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "common/cuda/cuda_error.hpp"
#include "common/cuda/driver.hpp"
#include "common/test_pattern/test_pattern.hpp"
#include "common/tests/needs.hpp"
#include "common/tests/run_as.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/03_ipc/memory_handle.hpp"
#include "labs/03_ipc/tests/segments.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

class SymmetricRangeIn : public ::testing::TestWithParam<RankMode> {};
INSTANTIATE_TEST_SUITE_P(Mode, SymmetricRangeIn, ::testing::ValuesIn(kModes), name_of_mode);

// Fills words with the pattern of `seed`, or checks that they hold it.
void fill(const Gpu& gpu, CUdeviceptr at, std::size_t words, int seed) {
    test_pattern::fill(gpu, {at, words, static_cast<std::uint32_t>(seed)});
}
bool holds(const Gpu& gpu, CUdeviceptr at, std::size_t words, int seed) {
    return test_pattern::compare(gpu, {at, words, static_cast<std::uint32_t>(seed)}).right();
}

// Every rank writes its own memory, and every rank reads all of it. Then every rank writes its
// right neighbour's memory, and reads what its left neighbour wrote.
void exercise(Rank& rank, const SymmetricRange& range, const std::string& name) {
    const Gpu gpu(rank.device());
    const std::size_t words = range.size() / 4;
    fill(gpu, range.local(), words, rank.rank() * 100 + 1);
    rank.bootstrap().barrier(name + " filled");
    for (int peer = 0; peer < rank.size(); ++peer) {
        EXPECT_TRUE(holds(gpu, range.peer(peer), words, peer * 100 + 1))
            << "rank " << rank.rank() << " reads rank " << peer;
    }
    rank.bootstrap().barrier(name + " read");
    const int right = (rank.rank() + 1) % rank.size();
    const int left = (rank.rank() + rank.size() - 1) % rank.size();
    fill(gpu, range.peer(right), words, rank.rank() * 100 + 2);
    rank.bootstrap().barrier(name + " written");
    EXPECT_TRUE(holds(gpu, range.local(), words, left * 100 + 2)) << "rank " << rank.rank();
    rank.bootstrap().barrier(name + " done");
}

TEST_P(SymmetricRangeIn, IsTheSameMemoryOnEveryRank) {
    run_as(GetParam(), 3, [](Rank& rank) {
        for (const std::size_t bytes : {4, 4097 * 4, (2 << 20) + 4}) {
            const SymmetricRange range(rank, bytes);
            const std::size_t unit = granularity(device_memory(rank.device()));
            EXPECT_EQ(range.size(), bytes);
            EXPECT_EQ(range.stride(), round_up(bytes, unit));
            EXPECT_EQ(range.base() % unit, 0u);
            EXPECT_EQ(range.peer(2), range.base() + 2 * range.stride());
            EXPECT_EQ(range.local(), range.peer(rank.rank()));
            EXPECT_EQ(range.at<float>(1, 12), reinterpret_cast<float*>(range.peer(1) + 12));
            exercise(rank, range, std::to_string(bytes));
        }
    });
}

TEST_P(SymmetricRangeIn, WorksForOneRank) {
    run_as(GetParam(), 1, [](Rank& rank) { exercise(rank, SymmetricRange(rank, 100), "one"); });
}

TEST_P(SymmetricRangeIn, WorksForMoreRanksThanDevices) {
    run_as(GetParam(), 9, [](Rank& rank) { exercise(rank, SymmetricRange(rank, 1000), "nine"); });
}

TEST_P(SymmetricRangeIn, ManyStandSideBySide) {
    run_as(GetParam(), 2, [](Rank& rank) {
        const SymmetricRange a(rank, 4096);
        SymmetricRange moved(rank, 8192);
        const SymmetricRange b = std::move(moved);
        EXPECT_FALSE(moved);
        exercise(rank, b, "b");
        exercise(rank, a, "a");
    });
}

TEST_P(SymmetricRangeIn, KeepsTheMemoryOfARankThatLetsGoFirst) {
    run_as(GetParam(), 3, [](Rank& rank) {
        auto range = std::make_unique<SymmetricRange>(rank, 4096);
        const Gpu gpu(rank.device());
        fill(gpu, range->local(), 1024, rank.rank());
        rank.bootstrap().barrier("filled");
        for (int leaving = 0; leaving < 3; ++leaving) {
            if (rank.rank() == leaving) {
                range.reset();
            }
            rank.bootstrap().barrier("left");
            for (int peer = 0; range && peer < 3; ++peer) {
                EXPECT_TRUE(holds(gpu, range->peer(peer), 1024, peer));
            }
            rank.bootstrap().barrier("seen");
        }
    });
}

TEST_P(SymmetricRangeIn, SaysWhichRankAsksForAnotherSize) {
    run_as(GetParam(), 3, [](Rank& rank) {
        for (const int one : {1, 2}) {
            for (const std::size_t other : {std::size_t{9000}, std::size_t{4096}}) {
                EXPECT_THAT([&] { SymmetricRange(rank, rank.rank() == one ? other : 8192); },
                            ::testing::ThrowsMessage<std::invalid_argument>(
                                AllOf(HasSubstr(fmt::format("rank {}", one)),
                                      HasSubstr(fmt::format("{}", other)), HasSubstr("8192"))));
            }
        }
        exercise(rank, SymmetricRange(rank, 4096), "after");
    });
}

TEST_P(SymmetricRangeIn, RefusesNothingAndTooMuch) {
    run_as(GetParam(), 2, [](Rank& rank) {
        EXPECT_THAT([&] { SymmetricRange(rank, rank.rank() == 1 ? 0 : 4096); },
                    ::testing::ThrowsMessage<std::exception>(HasSubstr("0 bytes")));
        EXPECT_THAT([&] { SymmetricRange(rank, std::size_t{1} << 45); },
                    ::testing::ThrowsMessage<std::exception>(HasSubstr("cuMemCreate")));
        EXPECT_THROW(SymmetricRange(rank, ~std::size_t{0}), std::exception);
        const SymmetricRange some(rank, 4096);
        EXPECT_THAT([&] { SymmetricRange(rank, some.local() + 16, ~std::size_t{0} - 7); },
                    ::testing::ThrowsMessage<std::invalid_argument>(HasSubstr("no memory of")));
        EXPECT_THAT([&] { SymmetricRange(rank, rank.rank() == 1 ? 0 : some.local(), 4096); },
                    ::testing::ThrowsMessage<std::exception>(
                        HasSubstr("there is no memory of 4096 bytes at 0x0")));
        EXPECT_THAT([&] { SymmetricRange(rank, rank.rank() == 0 ? 0x1000 : some.local(), 4096); },
                    ::testing::ThrowsMessage<std::exception>(
                        AllOf(HasSubstr("cuMemGetAddressRange(0x1000; share memory that is mapped"),
                              HasSubstr("CUDA_ERROR_NOT_FOUND"))));
        exercise(rank, SymmetricRange(rank, 4096), "after");
    });
}

const std::vector<std::size_t> kOneAndTwoGranules{1, 2};

// `bytes` of addresses, at which one piece of memory is mapped again and again.
struct MappedAgain {
    MappedAgain(int device, std::size_t piece, std::size_t bytes) : addresses(bytes) {
        const auto memory = PhysicalMemory::create(device_memory(device), piece);
        for (std::size_t offset = 0; offset < bytes; offset += piece) {
            mappings.emplace_back(addresses.base() + offset, piece, memory);
        }
        allow(addresses.base(), bytes, std::array{device});
    }
    AddressRange addresses;
    std::vector<Mapping> mappings;
};

// The ranks' memory differs: the stride has room for the longest.
TEST_P(SymmetricRangeIn, TakesTheStrideOfTheLongest) {
    run_as(GetParam(), 3, [](Rank& rank) {
        for (int longest = 0; longest < rank.size(); ++longest) {
            const Segments memory(rank.device(), rank.rank() == longest
                                                     ? std::vector<std::size_t>{1, 3}
                                                     : kOneAndTwoGranules);
            const std::size_t unit = granularity(device_memory(rank.device()));
            const SymmetricRange range(rank, memory.base(), 2 * unit);
            EXPECT_EQ(range.stride(), 4 * unit) << "rank " << longest << " has the most";
            exercise(rank, range, "different segments");
        }
    });
}

// Rank 0 has five granules, and rank 1 two of its own, twice as large.
TEST_P(SymmetricRangeIn, TakesAStrideOfTheLargestGranularity) {
    SYMM_NEEDS(is_emulated() && device_count() >= 2);
    const LargeGranules of_device_1;
    run_as(GetParam(), 2, [](Rank& rank) {
        const std::size_t unit = granularity(device_memory(0));
        const std::size_t granules = rank.rank() == 0 ? 5 : 2;
        const Segments memory(rank.device(), {granules});
        const SymmetricRange range(rank, memory.base(), 4 * unit);
        EXPECT_EQ(range.stride(), 6 * unit) << "a multiple of each rank's granularity";
    });
}

// More addresses than any int counts.
TEST_P(SymmetricRangeIn, HasRoomForMoreThan4GiB) {
    run_as(GetParam(), 2, [](Rank& rank) {
        constexpr std::size_t kPiece = std::size_t{512} << 20;
        const MappedAgain memory(rank.device(), kPiece, 9 * kPiece);
        const SymmetricRange range(rank, memory.addresses.base(), 9 * kPiece);
        EXPECT_EQ(range.stride(), 9 * kPiece);
    });
}

// More sizes of segments than one message of the bootstrap holds, on one rank.
TEST_P(SymmetricRangeIn, MayHaveThousandsOfSegments) {
    run_as(GetParam(), 2, [](Rank& rank) {
        const std::size_t unit = granularity(device_memory(rank.device()));
        const std::size_t count = kMaxContribution / sizeof(std::uint64_t) + 1;
        const std::size_t piece = rank.rank() == 1 ? unit : 128 * unit;
        const MappedAgain memory(rank.device(), piece, round_up(count * unit, piece));
        const SymmetricRange range(rank, memory.addresses.base(), count * unit);
        EXPECT_EQ(range.stride(), round_up(count * unit, 128 * unit));
        rank.bootstrap().barrier("the bootstrap can be used");
    });
}

TEST_P(SymmetricRangeIn, IsMadeAndDestroyedByAThreadWithoutAContext) {
    run_as(GetParam(), 2, [](Rank& rank) {
        const Segments memory(rank.device(), kOneAndTwoGranules);
        CUcontext current = rank.gpu().context();
        std::string error;
        std::thread([&] {
            error = text_thrown_by([&] {
                const SymmetricRange created(rank, 4096);
                const SymmetricRange shared(rank, memory.base(), 4096);
                cuCtxGetCurrent(&current);
            });
        }).join();
        EXPECT_EQ(error, "");
        EXPECT_EQ(current, nullptr) << "its context is another one afterwards";
    });
}

// Some systems have no handles (WSL).
TEST(SymmetricRange, OfThreadsAsksForNoHandles) {
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        const SymmetricRange range(rank, 4096);
        EXPECT_EQ(PhysicalMemory::mapped_at(range.local()).properties().requestedHandleTypes,
                  CU_MEM_HANDLE_TYPE_NONE);
        exercise(rank, range, "without handles");
    });
}

TEST_P(SymmetricRangeIn, SharesMemoryThatIsThereAlreadySegmentBySegment) {
    run_as(GetParam(), 3, [](Rank& rank) {
        const Gpu gpu(rank.device());
        auto memory = std::make_unique<Segments>(rank.device(), kOneAndTwoGranules);
        const std::size_t words = memory->size() / 4 - 3;
        fill(gpu, memory->base(), words, rank.rank() + 5);
        const SymmetricRange range(rank, memory->base(), words * 4);
        EXPECT_EQ(range.stride(), memory->size());
        for (int peer = 0; peer < 3; ++peer) {
            EXPECT_TRUE(holds(gpu, range.peer(peer), words, peer + 5));
        }
        rank.bootstrap().barrier("seen");
        if (rank.rank() != 1) {
            memory.reset();  // the range keeps the memory
        }
        exercise(rank, range, "after");
    });
}

// Memory made for descriptors alone has no FABRIC handle, whatever the machine supports.
TEST(SymmetricRange, TravelsByDescriptorsWhereTheMemoryHasNoOther) {
    run_as(RankMode::kProcess, 2, [](Rank& rank) {
        const Segments memory(rank.device(), kOneAndTwoGranules);
        const SymmetricRange range(rank, memory.base(), memory.size());
        EXPECT_EQ(range.handles().kind, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        exercise(rank, range, "descriptors");
        const PhysicalMemory imported = PhysicalMemory::mapped_at(range.peer(1 - rank.rank()));
        EXPECT_THROW(export_fd(imported), CudaError) << "by another process than its maker";
    });
}

TEST(SymmetricRange, TravelsByFabricWhereAllHaveIt) {
    const char* fabric = std::getenv("SYMM_EMU_FABRIC");  // 03_ipc_test.on_fabric sets it
    const bool all_have_it = is_emulated() && fabric != nullptr && std::string_view(fabric) == "1";
    run_as(RankMode::kProcess, 3, [&](Rank& rank) {
        const SymmetricRange range(rank, 4096);
        EXPECT_EQ(range.handles().kind, agree_on_handle_kind(rank).kind);
        if (all_have_it) {
            EXPECT_EQ(range.handles().kind, CU_MEM_HANDLE_TYPE_FABRIC);
        }
        exercise(rank, range, "by what all have");
    });
}

TEST_P(SymmetricRangeIn, BeginsWithTheSegmentOfAPointerIntoItsMiddle) {
    run_as(GetParam(), 2, [](Rank& rank) {
        const Segments memory(rank.device(), kOneAndTwoGranules);
        const std::size_t offset = rank.rank() == 1 ? 4096 : 0;
        const SymmetricRange range(rank, memory.base() + offset, 4096);
        EXPECT_EQ(range.lead(), offset);
        EXPECT_EQ(range.stride(), granularity(device_memory(rank.device())))
            << "more than the segment with the window is shared";
        exercise(rank, range, "from the segment on");
    });
}

// Each rank's window begins shortly before the end of its first segment.
TEST_P(SymmetricRangeIn, HasTheSegmentsThatAWindowReaches) {
    run_as(GetParam(), 3, [](Rank& rank) {
        const Gpu gpu(rank.device());
        const Segments memory(rank.device(), kOneAndTwoGranules);
        const std::size_t unit = granularity(device_memory(rank.device()));
        const std::size_t bytes = 8192;
        const auto lead_of = [&](int owner) {
            return unit - 4096 * static_cast<std::size_t>(owner + 1) / 2;
        };
        const CUdeviceptr window = memory.base() + lead_of(rank.rank());
        fill(gpu, window, bytes / 4, rank.rank() + 7);
        const SymmetricRange range(rank, window, bytes);
        EXPECT_EQ(range.lead(), lead_of(rank.rank()));
        ASSERT_LE(range.lead() + bytes, range.stride())
            << "rank " << rank.rank() << "'s window ends beyond the stride";
        for (int peer = 0; peer < 3; ++peer) {
            EXPECT_TRUE(holds(gpu, range.peer(peer) + lead_of(peer), bytes / 4, peer + 7))
                << "rank " << rank.rank() << " reads rank " << peer;
        }
        rank.bootstrap().barrier("read");

        // The second segment has two granules, and nothing is mapped after it.
        const SymmetricRange last(rank, memory.base() + memory.size() - bytes, bytes);
        EXPECT_EQ(last.lead(), 2 * unit - bytes) << "of a window at the end of two granules";
        EXPECT_EQ(last.stride(), 2 * unit) << "of a window at the end of the memory";
        const SymmetricRange byte(rank, memory.base() + unit + 1 - bytes, bytes);
        EXPECT_EQ(byte.stride(), 3 * unit) << "of a window with one byte of the second segment";

        // Here the first segment is longer than the second.
        const Segments falling(rank.device(), {2, 1});
        const SymmetricRange across(rank, falling.base() + 2 * unit - bytes / 2, bytes);
        EXPECT_EQ(across.stride(), 3 * unit) << "of a window from a long segment into a short one";

        const Segments three(rank.device(), {1, 1, 1});
        const SymmetricRange all(rank, three.base() + unit - bytes, unit + 2 * bytes);
        EXPECT_EQ(all.stride(), 3 * unit) << "of a window that reaches three segments";
    });
}

}  // namespace
}  // namespace symm
