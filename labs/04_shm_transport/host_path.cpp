#include "labs/04_shm_transport/host_path.hpp"

#include <fmt/core.h>

#include <initializer_list>
#include <vector>

#include "common/cuda/check.hpp"
#include "common/environment/environment.hpp"
#include "common/ranks/rank.hpp"
#include "common/sys/usage_error.hpp"
#include "labs/04_shm_transport/host_segment.hpp"

namespace symm {
namespace {

// What a driver answers that cannot share host memory in this way:
// - NOT_SUPPORTED: the container's seccomp filter hides the NUMA system calls (seen on an H100 with
//   driver 580, where get_mempolicy(2) answers ENOSYS), or the machine has no NUMA memory for GPUs.
// - NOT_PERMITTED: the container or the user may not have the handle.
// - PEER_ACCESS_UNSUPPORTED: some drivers want peer access even for host memory (NCCL issue 1838).
// Any other answer is a failure, and is thrown.
constexpr std::initializer_list<CUresult> kRefusals{
    CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED};

}  // namespace

std::string_view name_of(HostPath path) {
    return path == HostPath::kCuMem ? "cuMem" : "POSIX";
}

std::optional<HostPath> host_path(std::string_view name) {
    if (name == "auto") {
        return {};
    }
    if (name == "cumem") {
        return HostPath::kCuMem;
    }
    if (name == "posix") {
        return HostPath::kPosix;
    }
    throw UsageError(fmt::format("unknown path {}: say auto, cumem or posix", name));
}

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

HostPathChoice agree_on_host_path(Rank& rank, std::optional<HostPath> wanted, Deadline deadline) {
    const auto wishes = rank.bootstrap().allgather(
        "04: path asked for", wanted ? static_cast<int>(*wanted) : -1, deadline);
    for (std::size_t r = 1; r < wishes.size(); ++r) {
        if (wishes[r] != wishes[0]) {
            throw std::invalid_argument(fmt::format(
                "ranks 0 and {} ask for different paths to host memory: give all the same", r));
        }
    }
    if (wanted) {
        return {*wanted, {}};
    }
    HostPathChoice local;
    rank.bootstrap().together(
        "04: probe", [&] { local = probe_host_path(rank.device()); }, deadline);
    const auto reasons =
        rank.bootstrap().allgather_text("04: why not cuMem", local.why_not_cumem, deadline);
    for (std::size_t r = 0; r < reasons.size(); ++r) {
        if (!reasons[r].empty()) {
            return {HostPath::kPosix, fmt::format("rank {}: {}", r, reasons[r])};
        }
    }
    return {HostPath::kCuMem, {}};
}

}  // namespace symm
