#include "labs/06_allreduce/communicator/window.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {
namespace {

/// Bytes [first, last) of a segment, as offsets from its start. `first == last`: none.
struct Part {
    std::size_t first;
    std::size_t last;
};

/// The bytes of [begin, begin + bytes), offsets from the start of the range, that the segment has.
Part part_in(const WindowSegment& segment, std::size_t begin, std::size_t bytes) {
    const std::size_t first = std::max(begin, segment.offset);
    const std::size_t last = std::min(begin + bytes, segment.offset + segment.bytes);
    return {first - segment.offset, std::max(first, last) - segment.offset};
}

std::vector<WindowSegment> segments_of(const SymmetricRange& range) {
    std::vector<WindowSegment> segments;
    for (std::size_t at = 0; at < range.lead() + range.size(); at += segments.back().bytes) {
        const PhysicalMemory memory = PhysicalMemory::mapped_at(range.local() + at);
        segments.push_back({at, memory.size(), memory.handle()});
    }
    return segments;
}

bool has(const std::vector<WindowSegment>& segments, CUmemGenericAllocationHandle handle) {
    return std::ranges::find(segments, handle, &WindowSegment::handle) != segments.end();
}

}  // namespace

void WindowPlace::require_same_memory(CUdeviceptr pointer, std::size_t bytes) const {
    for (const WindowSegment& segment : window->segments) {
        const auto [first, last] = part_in(segment, offset, bytes);
        if (first == last) {
            continue;
        }
        const CUdeviceptr address = pointer + (segment.offset + first - offset);
        CUmemGenericAllocationHandle handle = 0;
        if (cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(address)) ==
            CUDA_SUCCESS) {
            PhysicalMemory::adopt(handle, 0).reset();  // only its value is of interest
        }
        if (handle != segment.handle) {
            throw std::invalid_argument(fmt::format(
                "the memory at {:#x} is not the memory that was registered there: release() a "
                "window before its memory is freed, and register the new memory",
                address));
        }
    }
}

bool WindowPlace::overlaps(std::size_t bytes, const WindowPlace& other,
                           std::size_t other_bytes) const {
    if (!window->has_alias || !other.window->has_alias) {
        return false;
    }
    for (const WindowSegment& segment : window->segments) {
        for (const WindowSegment& others : other.window->segments) {
            const Part mine = part_in(segment, offset, bytes);
            const Part theirs = part_in(others, other.offset, other_bytes);
            if (segment.handle == others.handle && mine.first < theirs.last &&
                theirs.first < mine.last) {
                return true;
            }
        }
    }
    return false;
}

Window& Windows::add(Rank& rank, SymmetricRange range, CUdeviceptr registered) {
    std::vector<WindowSegment> segments = rank.bootstrap().together("window", [&] {
        std::vector<WindowSegment> found = segments_of(range);
        if (const auto old = registered == 0 ? std::nullopt : find(registered, 1)) {
            old->require_same_memory(registered, 1);
        }
        return found;
    });
    std::vector<CUdeviceptr> bases = rank.bootstrap().allgather("window", range.base());
    bool has_alias = false;
    for (Window& other : windows_) {
        const bool shares = std::ranges::any_of(
            segments, [&](const WindowSegment& one) { return has(other.segments, one.handle); });
        other.has_alias |= shares;
        has_alias |= shares;
    }
    windows_.push_back(
        {std::move(range), registered, std::move(bases), std::move(segments), has_alias});
    return windows_.back();
}

std::list<Window>::iterator Windows::at(CUdeviceptr local) {
    const auto found = std::ranges::find(windows_, local, &Window::local);
    if (found == windows_.end()) {
        throw std::invalid_argument(
            fmt::format("{:#x} is not a window of this communicator", local));
    }
    return found;
}

std::list<Window> Windows::take(CUdeviceptr local) {
    std::list<Window> taken;
    taken.splice(taken.end(), windows_, at(local));
    return taken;
}

void Windows::release(Rank& rank, CUdeviceptr local) {
    const auto found = at(local);
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
                return WindowPlace{&window, window.range.lead() + (pointer - begin),
                                   begin != window.local()};
            }
        }
    }
    return std::nullopt;
}

}  // namespace symm
