#include "labs/03_ipc/handle_kind.hpp"

#include <map>
#include <mutex>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "common/environment/environment.hpp"
#include "common/ranks/rank.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/03_ipc/exported_handle.hpp"

namespace symm {
namespace {

// Why this device has no FABRIC handles; empty where it has.
std::string why_not_fabric(int device) {
    if (env::number("SYMM_FABRIC_ENABLE") == 0) {
        return "SYMM_FABRIC_ENABLE=0";
    }
    int supported = 0;
    cu_check(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
                                  device_handle(device)),
             "cuDeviceGetAttribute(HANDLE_TYPE_FABRIC_SUPPORTED, device={})", device);
    if (supported == 0) {
        return fmt::format("device {} has no CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED",
                           device);
    }
    const auto refused = refusal({CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_SUPPORTED}, [&] {
        const CUmemAllocationProp properties = device_memory(device, CU_MEM_HANDLE_TYPE_FABRIC);
        export_fabric(PhysicalMemory::create(properties, granularity(properties)));
    });
    return refused ? refused->what() : "";
}

HandleChoice choice(std::string why_not_fabric) {
    return {why_not_fabric.empty() ? CU_MEM_HANDLE_TYPE_FABRIC
                                   : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            std::move(why_not_fabric)};
}

}  // namespace

std::string_view name_of(CUmemAllocationHandleType kind) {
    switch (kind) {
        case CU_MEM_HANDLE_TYPE_FABRIC:
            return "FABRIC";
        case CU_MEM_HANDLE_TYPE_NONE:
            return "none";
        default:
            return "POSIX file descriptor";
    }
}

HandleChoice probe_handle_kind(int device) {
    static std::mutex mutex;
    static std::map<int, HandleChoice> known;
    const std::lock_guard lock(mutex);
    const auto found = known.find(device);
    return found != known.end()
               ? found->second
               : known.emplace(device, choice(why_not_fabric(device))).first->second;
}

HandleChoice agree_on_handle_kind(Rank& rank, Deadline deadline) {
    HandleChoice local;
    rank.bootstrap().together(
        "handle kind probed", [&] { local = probe_handle_kind(rank.device()); }, deadline);
    const auto reasons = rank.bootstrap().allgather_text(
        "kind of handle", local.why_not_fabric.substr(0, 500), deadline);
    for (std::size_t i = 0; i < reasons.size(); ++i) {
        if (!reasons[i].empty()) {
            return choice(fmt::format("rank {}: {}", i, reasons[i]));
        }
    }
    return choice("");
}

}  // namespace symm
