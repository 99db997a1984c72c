#include "labs/03_ipc/legacy_ipc.hpp"

#include <stdexcept>

#include "common/cuda/check.hpp"
#include "labs/02_access/kernels.hpp"
#include "labs/03_ipc/rank.hpp"

namespace symm {
namespace {

constexpr std::size_t kBytes = 64 * 1024;

// Memory of cuMemAlloc.
class PlainBuffer {
public:
    explicit PlainBuffer(std::size_t bytes) {
        check(cuMemAlloc(&address_, bytes), "cuMemAlloc(size={})", bytes);
    }
    PlainBuffer(const PlainBuffer&) = delete;
    PlainBuffer& operator=(const PlainBuffer&) = delete;
    ~PlainBuffer() { check_nothrow(cuMemFree(address_), "cuMemFree({:#x})", address_); }
    CUdeviceptr address() const { return address_; }

private:
    CUdeviceptr address_ = 0;
};

}  // namespace

CUipcMemHandle legacy_handle(CUdeviceptr pointer) {
    CUipcMemHandle handle{};
    check(cuIpcGetMemHandle(&handle, pointer), "cuIpcGetMemHandle({:#x})", pointer);
    return handle;
}

LegacyImport::LegacyImport(const CUipcMemHandle& handle) {
    check(cuIpcOpenMemHandle(&address_, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
          "cuIpcOpenMemHandle()");
}

LegacyImport::~LegacyImport() {
    if (address_ != 0) {
        check_nothrow(cuIpcCloseMemHandle(address_), "cuIpcCloseMemHandle({:#x})", address_);
    }
}

std::string walk_legacy_ipc(Rank& rank, CUdeviceptr vmm_memory) {
    std::string story;
    try {
        legacy_handle(vmm_memory);
        throw std::runtime_error("cuIpcGetMemHandle took memory of cuMemCreate");
    } catch (const CudaError& error) {
        story += fmt::format("memory of cuMemCreate: {}\n", name_of(error.result()));
    }
    const Gpu gpu(rank.device());
    const PlainBuffer mine(kBytes);
    Rendezvous& meeting = rank.rendezvous();
    queue_fill(gpu, {mine.address(), kBytes / 4, static_cast<std::uint32_t>(rank.rank())});
    gpu.wait("fill");
    const auto handles = meeting.allgather("legacy handles", legacy_handle(mine.address()));
    const int right = (rank.rank() + 1) % rank.size();
    meeting.together("legacy read", [&] {
        // With one rank, or threads, the handle comes from this very process.
        const bool same_process = meeting.process_of(right) == meeting.process_of(rank.rank());
        try {
            const LegacyImport theirs(handles[static_cast<std::size_t>(right)]);
            const Verdict verdict =
                verify(gpu, {theirs.address(), kBytes / 4, static_cast<std::uint32_t>(right)});
            if (!verdict.right()) {
                throw std::runtime_error("rank " + std::to_string(right) +
                                         "'s memory: " + verdict.describe(kBytes / 4));
            }
            story += fmt::format("memory of cuMemAlloc of rank {}: opened at {:#x}, {}\n", right,
                                 theirs.address(), verdict.describe(kBytes / 4));
        } catch (const CudaError& error) {
            if (!same_process) {
                throw;
            }
            story += fmt::format("memory of cuMemAlloc of rank {}, same process: {}\n", right,
                                 name_of(error.result()));
        }
    });
    // `together` was a barrier: nobody frees what another still reads.
    return story;
}

}  // namespace symm
