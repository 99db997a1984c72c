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

void compare_calls(Bootstrap& bootstrap, std::uint64_t number, const Call& call, bool in_windows,
                   Algorithm asked, const std::exception_ptr& refusal) {
    struct OneCall {
        std::uint64_t number;
        std::uint64_t count;
        Arithmetic arithmetic;
        Algorithm asked;
        std::uint32_t in_windows;
        std::uint32_t refused;
        bool operator==(const OneCall&) const = default;
    };
    const OneCall mine{number,
                       call.count,
                       call,
                       asked,
                       std::uint32_t{in_windows},
                       std::uint32_t{refusal != nullptr}};
    const auto all = bootstrap.allgather("all_reduce", mine);
    if (std::any_of(all.begin(), all.end(), [](const OneCall& one) { return one.refused != 0; })) {
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
        const OneCall& one = all[of];
        return fmt::format(
            "rank {} makes call {}: {}{} x {}, {}, by {}, buffers {}", of, one.number,
            one.arithmetic.collective == Collective::kAllReduce
                ? ""
                : fmt::format("{} of ", name_of(one.arithmetic.collective)),
            one.count, name_of(one.arithmetic.type), name_of(one.arithmetic.op), name_of(one.asked),
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
