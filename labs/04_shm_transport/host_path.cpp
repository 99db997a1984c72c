#include "labs/04_shm_transport/host_path.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <vector>

#include "common/cli/usage_error.hpp"
#include "common/cuda/check.hpp"
#include "common/ranks/rank.hpp"
#include "labs/04_shm_transport/host_segment.hpp"

namespace symm {

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
    const char* enabled = std::getenv("SYMM_CUMEM_HOST_ENABLE");
    if (enabled != nullptr && std::string_view(enabled) == "0") {
        return {HostPath::kPosix, "SYMM_CUMEM_HOST_ENABLE=0"};
    }
    try {
        // create() writes to the memory from the host; attach() imports and maps it once more.
        const HostSegment made = HostSegment::create(HostPath::kCuMem, 1, {&device, 1});
        HostSegment::attach(HostPath::kCuMem, made.share(), made.size(), {&device, 1});
        return {HostPath::kCuMem, {}};
    } catch (const CudaError& error) {
        return {HostPath::kPosix, error.what()};
    }
}

HostPathChoice agree_on_host_path(Rank& rank, std::optional<HostPath> wanted, Deadline deadline) {
    HostPathChoice mine{wanted.value_or(HostPath::kCuMem), {}};
    if (!wanted) {
        mine = probe_host_path(rank.device());
    }
    const auto wishes = rank.bootstrap().allgather(
        "04: path asked for", wanted ? static_cast<int>(*wanted) : -1, deadline);
    for (std::size_t r = 1; r < wishes.size(); ++r) {
        if (wishes[r] != wishes[0]) {
            throw std::invalid_argument(fmt::format(
                "ranks 0 and {} ask for different paths to host memory: give all the same", r));
        }
    }
    if (wanted) {
        return mine;
    }
    const auto reasons =
        rank.bootstrap().allgather_text("04: why not cuMem", mine.why_not_cumem, deadline);
    for (std::size_t r = 0; r < reasons.size(); ++r) {
        if (!reasons[r].empty()) {
            return {HostPath::kPosix, fmt::format("rank {}: {}", r, reasons[r])};
        }
    }
    return {HostPath::kCuMem, {}};
}

}  // namespace symm
