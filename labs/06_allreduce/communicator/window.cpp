#include "labs/06_allreduce/communicator/window.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace symm {

const Window& Windows::add(Rank& rank, SymmetricRange range, CUdeviceptr registered) {
    std::vector<CUdeviceptr> bases = rank.bootstrap().allgather("window", range.base());
    windows_.push_back({std::move(range), registered, std::move(bases)});
    return windows_.back();
}

void Windows::release(Rank& rank, CUdeviceptr local) {
    const auto found = std::find_if(windows_.begin(), windows_.end(),
                                    [&](const Window& one) { return one.local() == local; });
    if (found == windows_.end()) {
        throw std::invalid_argument(
            fmt::format("{:#x} is not a window of this communicator", local));
    }
    const auto number = std::distance(windows_.begin(), found);
    for (const auto other : rank.bootstrap().allgather("release window", number)) {
        if (other != number) {
            throw std::invalid_argument(
                fmt::format("the ranks release different windows: {} and {} of {}", number, other,
                            windows_.size()));
        }
    }
    windows_.erase(found);
}

std::optional<WindowPlace> Windows::find(CUdeviceptr pointer, std::size_t bytes) const {
    for (const Window& window : windows_) {
        const std::size_t size = window.range.size();
        for (const CUdeviceptr begin : {window.local(), window.registered}) {
            if (begin != 0 && pointer >= begin && pointer - begin <= size &&
                bytes <= size - (pointer - begin)) {
                return WindowPlace{&window, window.range.lead() + (pointer - begin)};
            }
        }
    }
    return std::nullopt;
}

}  // namespace symm
