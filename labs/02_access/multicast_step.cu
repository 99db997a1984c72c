#include "labs/02_access/multicast_step.hpp"

#include <fmt/format.h>

#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/launch.hpp"
#include "common/simt/multimem.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"
#include "labs/02_access/multicast_object.hpp"

namespace symm {
namespace {

/// Stores a pack into the memory of all devices.
struct StoreToAll {
    simt::Pack16* all;
    simt::Pack16 pack;
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        simt::store_to_all(block, all, pack);
    }
};

/// Adds up all devices' packs.
struct AddUpAll {
    const simt::Pack16* all;
    simt::Pack16* sum;
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        *sum = simt::load_reduce<std::uint64_t, simt::SwitchOp::kAdd>(block, all);
    }
};

/// Memory of each device, and one address for all of it.
struct Team {
    Team(std::span<const Gpu> gpus, const std::vector<int>& devices) {
        const int count = static_cast<int>(devices.size());
        const std::size_t bytes = MulticastObject::granularity(count);
        object = MulticastObject::create(count, bytes);
        for (const int device : devices) {
            object.add(device);
        }
        for (const int device : devices) {
            const CurrentContext current(gpus[static_cast<std::size_t>(device)].device());
            const PhysicalMemory memory = PhysicalMemory::create(
                device_memory(device, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), bytes);
            map(memory, std::vector{device});
            zero(ranges.back().base(), bytes);
            bound.push_back(object.bind(device, memory));
        }
        map(object.handle(), devices);
    }
    void map(const PhysicalMemory& memory, const std::vector<int>& devices) {
        const AddressRange& range = ranges.emplace_back(memory.size(), memory.size());
        mapped.emplace_back(range.base(), memory.size(), memory);
        allow(range.base(), memory.size(), devices);
    }
    simt::Pack16* own(int device) const { return at(ranges[static_cast<std::size_t>(device)]); }
    simt::Pack16* all() const { return at(ranges.back()); }

    std::vector<AddressRange> ranges;  ///< By device, then the object's.
    std::vector<Mapping> mapped;
    MulticastObject object;
    std::vector<MulticastBinding> bound;

private:
    static simt::Pack16* at(const AddressRange& range) {
        return reinterpret_cast<simt::Pack16*>(range.base());
    }
};

/// A pack of the device's memory.
simt::Pack16 loaded(const Gpu& gpu, const simt::Pack16* from) {
    const CurrentContext current(gpu.device());
    simt::Pack16 pack;
    copy_to_host(&pack, reinterpret_cast<CUdeviceptr>(from), sizeof(pack));
    return pack;
}

template <class Kernel>
void run(const Gpu& gpu, const Kernel& kernel) {
    const CurrentContext current(gpu.device());
    launch(gpu.stream(), 1, 1, kernel);
    gpu.wait("a multicast kernel");
}

}  // namespace

StepReport show_multicast(const StepContext& context) {
    StepReport report{"one address for the memory of all devices"};
    const int devices = static_cast<int>(context.gpus.size());
    try {
        for (int device = 0; device < devices; ++device) {
            require_multicast(device);
        }
    } catch (const std::runtime_error& error) {
        report.lines.emplace_back(error.what());
        return report;
    }
    std::vector<int> all(context.gpus.size());
    std::iota(all.begin(), all.end(), 0);
    const Team team(context.gpus, all);
    report.lines.push_back(fmt::format("a multicast object of {} devices at {}", devices,
                                       static_cast<void*>(team.all())));
    bool arrived = true;
    for (const int writer : all) {
        const auto number = static_cast<std::uint64_t>(writer + 1);
        run(context.gpu(writer), StoreToAll{team.all(), {{number, 10 * number}}});
        for (const int device : all) {
            const simt::Pack16 seen = loaded(context.gpu(device), team.own(device));
            arrived = arrived && seen.half[0] == number && seen.half[1] == 10 * number;
        }
    }
    report.expect(arrived, "each device stored once, and all devices had it");
    std::uint64_t sum = 0;
    for (const int device : all) {
        const CurrentContext current(context.gpu(device).device());
        const simt::Pack16 own = {{static_cast<std::uint64_t>(device + 1), 0}};
        copy_to_device(reinterpret_cast<CUdeviceptr>(team.own(device)), &own, sizeof(own));
        sum += own.half[0];
    }
    // The result goes to another pack: this one is being loaded by the object's address.
    run(context.gpu(0), AddUpAll{team.all(), team.own(0) + 1});
    const std::uint64_t seen = loaded(context.gpu(0), team.own(0) + 1).half[0];
    report.expect(seen == sum, fmt::format("device 0 loaded once: the sum of all, {}", seen));
    return report;
}

}  // namespace symm
