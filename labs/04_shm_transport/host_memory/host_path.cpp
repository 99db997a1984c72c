#include "labs/04_shm_transport/host_memory/host_path.hpp"

#include <fmt/core.h>

#include <initializer_list>

#include "common/cuda/check.hpp"
#include "common/ranks/rank.hpp"
#include "common/sys/environment.hpp"
#include "labs/04_shm_transport/host_memory/host_segment.hpp"

namespace symm {
namespace {

// Results of a driver that cannot share host memory in this way:
// - NOT_SUPPORTED: the container's seccomp filter hides the NUMA system calls (seen on an H100 with
//   driver 580, where get_mempolicy(2) answers ENOSYS), or the machine has no NUMA memory for GPUs.
// - NOT_PERMITTED: the container or the user may not use such handles.
// - PEER_ACCESS_UNSUPPORTED: some drivers need peer access even for host memory (NCCL issue 1838).
// Any other error is a failure, and is thrown.
constexpr std::initializer_list<CUresult> kRefusals{
    CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED};

}  // namespace

HostPathChoice probe_host_path(int device) {
    if (env::number("SYMM_CUMEM_HOST_ENABLE") == 0) {
        return {HostPath::kPosix, "SYMM_CUMEM_HOST_ENABLE=0"};
    }
    const auto refused = refusal(kRefusals, [&] {
        // create() writes to the memory from the host; attach() imports and maps it once more.
        const HostSegment made = HostSegment::create(HostPath::kCuMem, 1, {&device, 1});
        HostSegment::attach(HostPath::kCuMem, made.share(), made.size(), {&device, 1});
    });
    return refused ? HostPathChoice{HostPath::kPosix, refused->what()} : HostPathChoice{};
}

HostPathChoice agree_on_host_path(Rank& rank, std::optional<HostPath> wanted) {
    HostPathChoice local;
    rank.bootstrap().together("04: probe", [&] {
        if (!wanted) {
            local = probe_host_path(rank.device());
        } else if (*wanted == HostPath::kPosix) {
            local = {HostPath::kPosix, "POSIX was asked for"};
        }
    });
    const auto reasons = rank.bootstrap().allgather_text("04: why not cuMem", local.why_not_cumem);
    for (std::size_t r = 0; r < reasons.size(); ++r) {
        if (!reasons[r].empty()) {
            return {HostPath::kPosix, fmt::format("rank {}: {}", r, reasons[r])};
        }
    }
    return {HostPath::kCuMem, {}};
}

}  // namespace symm
