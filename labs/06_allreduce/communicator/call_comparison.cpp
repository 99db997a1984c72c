#include "labs/06_allreduce/communicator/call_comparison.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace symm {
namespace {

std::string text_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& known) {
        return known.what();
    }
}

}  // namespace

void compare_calls(Bootstrap& bootstrap, std::uint64_t number, const CallSize& call, ReduceOp op,
                   Algorithm asked, const std::exception_ptr& refusal) {
    struct Call {
        std::uint64_t number;
        std::uint64_t count;
        DataType type;
        ReduceOp op;
        Algorithm asked;
        std::uint32_t in_windows;
        Collective collective;
        std::uint32_t refused;
        bool operator==(const Call&) const = default;
    };
    const auto all = bootstrap.allgather(
        "all_reduce", Call{number, call.count, call.type, op, asked, std::uint32_t{call.in_windows},
                           call.collective, std::uint32_t{refusal != nullptr}});
    if (std::any_of(all.begin(), all.end(), [](const Call& one) { return one.refused != 0; })) {
        const auto reasons =
            bootstrap.allgather_text("refusal", refusal ? text_of(refusal).substr(0, 4096) : "");
        if (refusal) {
            std::rethrow_exception(refusal);
        }
        for (std::size_t p = 0; p < all.size(); ++p) {
            if (all[p].refused != 0) {
                throw std::invalid_argument(
                    fmt::format("rank {} refuses its call {}: {}", p, all[p].number, reasons[p]));
            }
        }
    }
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
