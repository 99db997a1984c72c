// The exchange of segments alone: without addresses, mappings and access.

#include "labs/03_ipc/memory_exchange.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "common/cuda/driver.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/inventory.hpp"
#include "common/tests/meet.hpp"
#include "common/tests/run_as.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"
#include "labs/03_ipc/few_handles.hpp"
#include "labs/03_ipc/tests/segments.hpp"

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

// The lists of all ranks.
template <class T>
std::vector<std::vector<T>> gather(Bootstrap& bootstrap, const std::vector<T>& local) {
    std::vector<std::vector<T>> all;
    for (const auto& bytes : bootstrap.allgather_bytes("list", std::as_bytes(std::span(local)))) {
        all.emplace_back(bytes.size() / sizeof(T));
        std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<std::byte*>(all.back().data()));
    }
    return all;
}

TEST(MemoryExchange, FailsOnAllRanksAndCanBeRepeated) {
    SYMM_NEEDS(is_emulated());
    run_as(RankMode::kProcess, 3, [](Rank& rank) {
        constexpr int kSegments = 50;  // two batches
        Exchange exchange(rank, kSegments, 1);
        int taken = 0;
        const TakeSegment take = [&](std::size_t, const PhysicalMemory&) { ++taken; };
        const int descriptors = open_descriptors();
        std::vector<int> next{0, 1000, 2000};  // by owner
        const auto exports = emu::calls_made("cuMemExportToShareableHandle");
        exchange.run([&](std::size_t owner, const PhysicalMemory& memory) {
            ++taken;
            EXPECT_EQ(FirstWord(memory, rank.device()).get(), next[owner]++)
                << "rank " << rank.rank() << " received another segment of rank " << owner;
        });
        EXPECT_EQ(taken, 3 * kSegments + 1 + 2);
        EXPECT_EQ(emu::calls_made("cuMemExportToShareableHandle") - exports,
                  kSegments + rank.rank())
            << "exports of rank " << rank.rank() << ", and its segments";
        Exchange(rank, 40, 5).run(take);  // rank 0 has one batch, the others have two
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

// Tensors are given by quarters of granules, counted from the first segment on: 0 to 3, 4 to 11, 12
// to 15, 16 to 23. The second segment has other addresses as well: 24 to 31. Rank 1 has none, and
// rank 0 has one twice.
TEST(FewHandles, LeadToAllTensorsOfAllRanks) {
    run_as(RankMode::kProcess, 4, [](Rank& rank) {
        Bootstrap& bootstrap = rank.bootstrap();
        const std::vector<int> quarters[] = {
            {1, 4, 5, 9, 10, 9}, {}, {14, 4, 26, 17, 30, 22, 7}, {25, 20, 8, 29, 0}};
        const auto number_of = [&](std::size_t owner, std::size_t i) {
            const int quarter = quarters[owner][i];
            return static_cast<int>(100 * owner) + (quarter < 24 ? quarter : quarter - 20);
        };
        const auto me = static_cast<std::size_t>(rank.rank());
        const int device = rank.device();
        const std::size_t unit = granularity(device_memory(device));
        const Segments memory(device, {1, 2, 1, 2});
        const AddressRange others(2 * unit);
        const Mapping again(others.base(), others.size(),
                            PhysicalMemory::mapped_at(memory.base() + unit));
        allow(others.base(), others.size(), std::span(&device, 1));
        std::vector<CUdeviceptr> tensors;
        for (const int quarter : quarters[me]) {
            const CUdeviceptr at = static_cast<unsigned>(quarter) * unit / 4;
            tensors.push_back(at < memory.size() ? memory.base() + at
                                                 : others.base() + at - memory.size());
        }
        const auto before = is_emulated() ? emu::inventory() : emu::Inventory{};
        {
            SharedTensors shared;
            std::vector<std::uint64_t> sizes;
            bootstrap.together("share", [&] {
                share({tensors.rbegin(), tensors.rend()});  // keeps nothing for the next call
                shared = share(std::vector(tensors));       // a copy of its own
                for (const PhysicalMemory& segment : shared.segments) {
                    sizes.push_back(segment.size());
                }
                if (shared.places.size() != tensors.size()) {
                    throw std::runtime_error(fmt::format("{} tensors have {} places",
                                                         tensors.size(), shared.places.size()));
                }
                for (const auto& [segment, offset] : shared.places) {
                    if (segment >= sizes.size()) {
                        throw std::runtime_error(fmt::format(
                            "a tensor in segment {}, and {} are sent", segment, sizes.size()));
                    }
                    if (offset >= sizes[segment]) {
                        throw std::runtime_error(fmt::format(
                            "a tensor at {} of a segment of {} bytes", offset, sizes[segment]));
                    }
                }
            });
            const auto all_sizes = gather(bootstrap, sizes);
            const auto all_places = gather(bootstrap, shared.places);
            std::vector<AddressRange> ranges;
            std::vector<Mapping> mappings;
            std::vector<std::vector<CUdeviceptr>> bases(all_sizes.size());
            exchange_memory(rank, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, shared.segments,
                            all_sizes, [&](std::size_t owner, const PhysicalMemory& segment) {
                                ranges.emplace_back(segment.size());
                                bases[owner].push_back(ranges.back().base());
                                mappings.emplace_back(bases[owner].back(), segment.size(), segment);
                                allow(bases[owner].back(), segment.size(), std::span(&device, 1));
                            });
            for (std::size_t i = 0; i < tensors.size(); ++i) {
                const int number = number_of(me, i);
                copy_to_device(tensors[i], &number, sizeof(number));
            }
            bootstrap.barrier("written");
            for (std::size_t owner = 0; owner < all_places.size(); ++owner) {
                for (std::size_t i = 0; i < all_places[owner].size(); ++i) {
                    const auto [segment, offset] = all_places[owner][i];
                    int seen = 0;
                    copy_to_host(&seen, bases[owner][segment] + offset, sizeof(seen));
                    EXPECT_EQ(seen, number_of(owner, i))
                        << "rank " << rank.rank() << " at the place of"
                        << " tensor " << i << " of rank " << owner;
                }
            }
            bootstrap.barrier("read");
        }
        if (is_emulated()) {
            EXPECT_EQ(emu::inventory(), before) << "what share() has left";
            long sent = 0;
            for (const long of_rank : bootstrap.allgather(
                     "descriptors", emu::calls_made("cuMemExportToShareableHandle"))) {
                sent += of_rank;
            }
            rank.headline("score: {}", sent);
        }
    });
}

}  // namespace
}  // namespace symm
