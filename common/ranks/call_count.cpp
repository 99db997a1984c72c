#include "common/ranks/call_count.hpp"

#include <fmt/core.h>

#include <stdexcept>

namespace symm {

std::uint64_t CallCount::begin(Bootstrap& bootstrap) {
    if (was_refused_) {
        const auto all = bootstrap.allgather("the call after a refused one", calls_);
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            if (all[rank] != calls_) {
                throw std::invalid_argument(fmt::format(
                    "rank {} has refused its call {}, and rank {} its call {}: all ranks must make "
                    "the same calls",
                    bootstrap.rank(), calls_, rank, all[rank]));
            }
        }
        was_refused_ = false;
    }
    return ++calls_;
}

}  // namespace symm
