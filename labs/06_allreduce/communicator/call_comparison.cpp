#include "labs/06_allreduce/communicator/call_comparison.hpp"

#include <fmt/core.h>

#include <stdexcept>

namespace symm {

void CallComparison::compare(Bootstrap& bootstrap, const CallSize& call, ReduceOp op,
                             Algorithm asked) {
    struct Call {
        std::uint64_t number;
        std::uint64_t count;
        DataType type;
        ReduceOp op;
        Algorithm asked;
        std::uint32_t in_windows;
        Collective collective;
        bool operator==(const Call&) const = default;
    };
    const auto all =
        bootstrap.allgather("all_reduce", Call{++calls_, call.count, call.type, op, asked,
                                               std::uint32_t{call.in_windows}, call.collective});
    const auto text = [&](std::size_t of) {
        const Call& one = all[of];
        return fmt::format("rank {} makes call {}: {}{} x {}, {}, by {}, buffers {}", of,
                           one.number,
                           one.collective == Collective::kAllReduce
                               ? ""
                               : fmt::format("{} of ", name_of(one.collective)),
                           one.count, name_of(one.type), name_of(one.op), name_of(one.asked),
                           one.in_windows != 0 ? "in windows" : "in no windows");
    };
    for (std::size_t p = 1; p < all.size(); ++p) {
        if (all[p] != all[0]) {
            throw std::invalid_argument(
                fmt::format("the ranks' calls differ: {}; {}", text(0), text(p)));
        }
    }
}

}  // namespace symm
