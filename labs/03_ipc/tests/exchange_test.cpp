// The exchange of segments alone: without addresses, mappings and access.

#include "labs/03_ipc/memory_exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "common/cuda/driver.hpp"
#include "common/emu/faults.hpp"
#include "common/tests/meet.hpp"
#include "common/tests/run_as.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// The first word of a segment, through a mapping of its own.
struct FirstWord {
    FirstWord(const PhysicalMemory& memory, int device)
        : range(memory.size()), mapping(range.base(), memory.size(), memory) {
        give_access(range.base(), memory.size(), device);
    }
    void set(int value) { copy_to_device(range.base(), &value, sizeof(int)); }
    int get() const {
        int value = 0;
        copy_to_host(&value, range.base(), sizeof(int));
        return value;
    }
    AddressRange range;
    Mapping mapping;
};

// Every rank's segments of one granule, and their exchange by file descriptors. Rank r has
// r * `more` segments more than rank 0.
class Exchange {
public:
    Exchange(Rank& rank, std::size_t segments, std::size_t more = 0) : rank_(rank) {
        const CUmemAllocationProp properties = device_memory(rank.device());
        const std::size_t bytes = granularity(properties);
        for (int owner = 0; owner < rank.size(); ++owner) {
            sizes_.emplace_back(segments + static_cast<std::size_t>(owner) * more, bytes);
        }
        for (const std::uint64_t size : sizes_[static_cast<std::size_t>(rank.rank())]) {
            const int number = 1000 * rank.rank() + static_cast<int>(local_.size());
            local_.push_back(PhysicalMemory::create(properties, size));
            FirstWord(local_.back(), rank.device()).set(number);
        }
    }
    void run(const TakeSegment& take) {
        exchange_memory(rank_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, local_, sizes_, take);
    }

private:
    Rank& rank_;
    std::vector<PhysicalMemory> local_;
    std::vector<std::vector<std::uint64_t>> sizes_;
};

TEST(MemoryExchange, FailsOnAllRanksAndCanBeRepeated) {
    SYMM_NEEDS(is_emulated());
    run_as(RankMode::kProcess, 3, [](Rank& rank) {
        constexpr int kSegments = 50;  // two batches
        Exchange exchange(rank, kSegments, 1);
        int taken = 0;
        const TakeSegment take = [&](std::size_t, const PhysicalMemory&) { ++taken; };
        const int descriptors = open_descriptors();
        std::vector<int> next{0, 1000, 2000};  // by owner
        exchange.run([&](std::size_t owner, const PhysicalMemory& memory) {
            ++taken;
            EXPECT_EQ(FirstWord(memory, rank.device()).get(), next[owner]++)
                << "rank " << rank.rank() << " received another segment of rank " << owner;
        });
        EXPECT_EQ(taken, 3 * kSegments + 1 + 2);
        const std::tuple<const char*, int, int> failures[] = {
            {"cuMemExportToShareableHandle", 2, 1},
            {"cuMemExportToShareableHandle", kSegments, 0},
            {"cuMemImportFromShareableHandle", 3, 1},
            {"cuMemImportFromShareableHandle", 2 * kSegments, 2}};
        for (const auto& [function, call, failing] : failures) {
            if (rank.rank() == failing) {
                emu::fail_call(function, call, kInjected);
            }
            EXPECT_THAT([&] { exchange.run(take); },
                        ::testing::ThrowsMessage<std::exception>(HasSubstr(function)))
                << "rank " << rank.rank() << " when call " << call << " fails on rank " << failing;
            emu::clear_failures();
            EXPECT_NO_THROW(rank.bootstrap().barrier("after the failure"));
            EXPECT_EQ(open_descriptors(), descriptors) << "after call " << call;
        }
        taken = 0;
        exchange.run(take);
        EXPECT_EQ(taken, 3 * kSegments + 1 + 2);
    });
}

TEST(MemoryExchange, HasFewDescriptorsOpenAtOnce) {
    run_as(RankMode::kProcess, 4, [](Rank& rank) {
        Exchange exchange(rank, 100);
        const int before = open_descriptors();
        int most = 0;
        exchange.run([&](std::size_t owner, const PhysicalMemory&) {
            if (owner == 0 && rank.rank() == 0) {  // before the batch's imports
                most = std::max(most, open_descriptors() - before);
            }
        });
        EXPECT_LE(most, 256);
        rank.headline("open at once: {}", most);
    });
}

}  // namespace
}  // namespace symm
