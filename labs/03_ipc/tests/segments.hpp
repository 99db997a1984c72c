#pragma once
/// \file
/// Shared by the tests of this lab: both kinds of ranks, and memory of several segments (pieces of
/// physical memory), like mem_alloc's or a growing buffer's.

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/cuda/driver.hpp"
#include "common/ranks/rank.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"
#include "labs/02_access/access.hpp"

namespace symm::testing {

/// For tests that run with ranks of each kind.
inline constexpr RankMode kModes[] = {RankMode::kThread, RankMode::kProcess};
inline std::string name_of_mode(const ::testing::TestParamInfo<RankMode>& info) {
    return std::string(name_of(info.param));
}

/// Segments of the given numbers of granules, one after the other in one range of addresses. Their
/// device has access to them.
class Segments {
public:
    Segments(int device, const std::vector<std::size_t>& granules) {
        const CUmemAllocationProp properties = device_memory(device);
        const std::size_t unit = granularity(properties);
        std::size_t bytes = 0;
        for (const std::size_t count : granules) {
            bytes += count * unit;
        }
        range_ = AddressRange(bytes);
        CUdeviceptr next = range_.base();
        for (const std::size_t count : granules) {
            mappings_.emplace_back(next, count * unit,
                                   PhysicalMemory::create(properties, count * unit));
            next += count * unit;
        }
        allow(range_.base(), bytes, std::span(&device, 1));
    }
    CUdeviceptr base() const { return range_.base(); }
    std::size_t size() const { return range_.size(); }

private:
    AddressRange range_;
    std::vector<Mapping> mappings_;
};

/// While it lives, device 1 seems to have twice the granularity of the others. Emulated driver
/// only.
class LargeGranules {
public:
    LargeGranules() {
        static DriverTable table = driver();
        table.cuMemGetAllocationGranularity_ = [](std::size_t* bytes,
                                                  const CUmemAllocationProp* properties,
                                                  CUmemAllocationGranularity_flags flags) {
            const CUresult result =
                driver().cuMemGetAllocationGranularity_(bytes, properties, flags);
            *bytes *= properties->location.id == 1 ? 2 : 1;
            return result;
        };
        use_driver_table(&table);
    }
    LargeGranules(const LargeGranules&) = delete;
    LargeGranules& operator=(const LargeGranules&) = delete;
    ~LargeGranules() { use_driver_table(&driver()); }

private:
    static const DriverTable& driver() {
        static const DriverTable& emulated = driver_table();  // read before it is replaced
        return emulated;
    }
};

}  // namespace symm::testing
