#include "labs/06_allreduce/communicator/memory_budget.hpp"

#include "common/sys/bytes.hpp"
#include "common/sys/usage_error.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"

namespace symm {

void require_memory(const Rank& rank, std::size_t bytes, std::string_view option) {
    const std::size_t memory = rank.gpu().total_memory();
    const std::size_t part = memory / static_cast<std::size_t>(rank.most_on_a_device());
    const std::size_t unit = granularity(device_memory(rank.device()));
    // Two allocations, rounded up, and a unit for small ones: words that kernels set, and the
    // result check's report.
    const std::size_t state =
        round_up(Communicator::most_state_bytes(rank.size()), unit) + 2 * unit;
    const std::size_t most = part > state ? (part - state) / 2 / unit * unit : 0;
    if (most == 0) {
        throw UsageError("device {} has {} of memory, too little for an AllReduce of {} ranks",
                         rank.device(), format_bytes(memory), rank.size());
    }
    if (bytes > most) {
        throw UsageError(
            "2 buffers of {} do not fit in a rank's share of device {}'s {}: use {} {} or less",
            format_bytes(bytes), rank.device(), format_bytes(memory), option, format_bytes(most));
    }
}

}  // namespace symm
