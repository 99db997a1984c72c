#include "labs/03_ipc/legacy_ipc.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/sys/owner.hpp"
#include "common/test_pattern/test_pattern.hpp"

namespace symm {
namespace {

constexpr std::size_t kBytes = 64 * 1024;

CUipcMemHandle legacy_handle(CUdeviceptr pointer) {
    CUipcMemHandle handle{};
    cu_check(cuIpcGetMemHandle(&handle, pointer), "cuIpcGetMemHandle({:#x})", pointer);
    return handle;
}

// Another process's allocation, opened here.
class LegacyImport : public Owner<LegacyImport, CUdeviceptr> {
public:
    explicit LegacyImport(const CUipcMemHandle& handle) {
        CUdeviceptr address = 0;
        cu_check(cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                 "cuIpcOpenMemHandle()");
        value_ = address;
    }
    CUdeviceptr address() const { return value_; }
    static void give_back(CUdeviceptr address) {
        cu_check(cuIpcCloseMemHandle(address), "cuIpcCloseMemHandle({:#x})", address);
    }
};

}  // namespace

std::string walk_legacy_ipc(Rank& rank, CUdeviceptr vmm_memory) {
    const auto no_handle = refusal({CUDA_ERROR_INVALID_VALUE}, [&] { legacy_handle(vmm_memory); });
    if (!no_handle) {
        throw std::runtime_error("cuIpcGetMemHandle accepted memory of cuMemCreate");
    }
    std::string story = fmt::format("memory of cuMemCreate: {}\n", name_of(no_handle->result()));

    const Gpu gpu(rank.device());
    const DeviceMemory local(kBytes);
    const auto of = [](int owner, CUdeviceptr at) -> test_pattern::Range {
        // The last value is the seed: each rank's data differs.
        return {at, kBytes / 4, static_cast<std::uint32_t>(owner)};
    };
    test_pattern::fill(gpu, of(rank.rank(), local.address()));
    Bootstrap& bootstrap = rank.bootstrap();
    const auto handles = bootstrap.allgather("legacy handles", legacy_handle(local.address()));
    const int right = (rank.rank() + 1) % rank.size();
    const CUipcMemHandle& handle = handles[static_cast<std::size_t>(right)];
    story += fmt::format("memory of cuMemAlloc of rank {}", right);
    bootstrap.together("legacy read", [&] {
        if (rank.process_of(right) == rank.process_of(rank.rank())) {
            const auto refused =
                refusal({CUDA_ERROR_INVALID_CONTEXT}, [&] { const LegacyImport peer(handle); });
            if (!refused) {
                throw std::runtime_error("cuIpcOpenMemHandle opened a handle of its own process");
            }
            story += fmt::format(", same process: {}\n", name_of(refused->result()));
            return;
        }
        const LegacyImport peer(handle);
        const test_pattern::Result result = test_pattern::compare(gpu, of(right, peer.address()));
        if (!result.right()) {
            throw std::runtime_error(fmt::format("rank {}'s memory: {}", right, result.describe()));
        }
        story += fmt::format(": opened at {:#x}, {}\n", peer.address(), result.describe());
    });
    // together() was a barrier: no rank frees memory that another rank still reads.
    return story;
}

}  // namespace symm
