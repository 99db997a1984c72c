#include "labs/06_allreduce/communicator/window.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "common/sys/named.hpp"

namespace symm {
namespace {

constexpr std::array<std::string_view, 2> kWindowKinds{"plain", "symmetric"};

}  // namespace

const Window& Windows::add(Rank& rank, SymmetricRange range, WindowKind kind,
                           CUdeviceptr registered) {
    require_named(kWindowKinds, "WindowKind", kind);
    struct Described {
        CUdeviceptr base;
        WindowKind kind;
    };
    std::vector<CUdeviceptr> bases;
    for (const auto& [base, other] :
         rank.bootstrap().allgather("window", Described{range.base(), kind})) {
        if (other != kind) {
            throw std::invalid_argument("a window has to be of the same WindowKind on all ranks");
        }
        bases.push_back(base);
    }
    windows_.push_back({std::move(range), kind, registered, std::move(bases)});
    return windows_.back();
}

void Windows::release(Rank& rank, CUdeviceptr local) {
    const auto found = std::find_if(windows_.begin(), windows_.end(),
                                    [&](const Window& one) { return one.local() == local; });
    if (found == windows_.end()) {
        throw std::invalid_argument(fmt::format("{:#x} is no window of this communicator", local));
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
