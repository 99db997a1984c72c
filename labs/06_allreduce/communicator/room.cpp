#include "labs/06_allreduce/communicator/room.hpp"

#include <fmt/core.h>

#include "common/cli/bytes.hpp"
#include "common/sys/usage_error.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"

namespace symm {

void require_room(const Rank& rank, std::size_t bytes, std::string_view option) {
    const std::size_t memory = rank.gpu().total_memory();
    const std::size_t part = memory / static_cast<std::size_t>(rank.most_on_a_device());
    const std::size_t unit = granularity(device_memory(rank.device()));
    // One unit more for what is small: words that kernels set, and the result check's report.
    const std::size_t state = round_up(Communicator::state_bytes(rank.size()), unit) +
                              round_up(TwoShotCopy::scratch_bytes(), unit) + unit;
    const std::size_t most = part > state ? (part - state) / 2 / unit * unit : 0;
    if (most == 0) {
        throw UsageError(
            fmt::format("the {} of device {} are too little for an AllReduce of {} ranks",
                        format_bytes(memory), rank.device(), rank.size()));
    }
    if (bytes > most) {
        throw UsageError(fmt::format(
            "2 buffers of {} are more than a rank's part of the {} of device {}: "
            "say {} {} or less",
            format_bytes(bytes), format_bytes(memory), rank.device(), option, format_bytes(most)));
    }
}

}  // namespace symm
