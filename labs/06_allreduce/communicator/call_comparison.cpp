#include "labs/06_allreduce/communicator/call_comparison.hpp"

#include <fmt/core.h>

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

void compare_calls(Bootstrap& bootstrap, std::uint64_t number, std::string_view call,
                   const std::exception_ptr& refusal) {
    struct OneCall {
        std::uint64_t number;
        std::uint64_t refused;
    };
    const auto all = bootstrap.allgather("call", OneCall{number, refusal != nullptr});
    const auto texts =
        bootstrap.allgather_text("call", refusal ? text_of(refusal).substr(0, 4096) : call);
    if (refusal) {
        std::rethrow_exception(refusal);
    }
    for (std::size_t p = 0; p < all.size(); ++p) {
        if (all[p].refused != 0) {
            throw std::invalid_argument(
                fmt::format("rank {} refuses its call {}: {}", p, all[p].number, texts[p]));
        }
    }
    for (std::size_t p = 1; p < all.size(); ++p) {
        if (all[p].number != all[0].number || texts[p] != texts[0]) {
            throw std::invalid_argument(fmt::format(
                "the ranks' calls differ: rank 0 makes call {}: {}; rank {} makes call {}: {}",
                all[0].number, texts[0], p, all[p].number, texts[p]));
        }
    }
}

}  // namespace symm
