#include "labs/03_ipc/handle_kind.hpp"

#include <fmt/core.h>

#include "common/cuda/check.hpp"
#include "common/sys/environment.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/03_ipc/memory_handle.hpp"

namespace symm {
namespace {

// Why this device has no FABRIC handles; empty if it has them.
std::string why_not_fabric(int device) {
    if (env::number("SYMM_FABRIC_ENABLE") == 0) {
        return "SYMM_FABRIC_ENABLE=0";
    }
    if (device_attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED) == 0) {
        return fmt::format("device {} has no CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED",
                           device);
    }
    // The error, if it is one of these; nothing if all calls succeed. Other errors are thrown.
    const auto refused = refusal({CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_SUPPORTED}, [&] {
        const CUmemAllocationProp properties = device_memory(device, CU_MEM_HANDLE_TYPE_FABRIC);
        export_fabric(PhysicalMemory::create(properties, granularity(properties)));
    });
    return refused ? refused->what() : "";
}

}  // namespace

HandleChoice agree_on_handle_kind(Rank& rank) {
    std::string reason;
    rank.bootstrap().together("FABRIC tried", [&] { reason = why_not_fabric(rank.device()); });
    const auto reasons = rank.bootstrap().allgather_text("why not FABRIC", reason);
    for (std::size_t i = 0; i < reasons.size(); ++i) {
        if (!reasons[i].empty()) {
            return {CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                    fmt::format("rank {}: {}", i, reasons[i])};
        }
    }
    return {CU_MEM_HANDLE_TYPE_FABRIC, {}};
}

}  // namespace symm
