#pragma once
/// \file
/// Counts the POSIX segments of this process, so that tests see what is left behind.

#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>

namespace symm {

/// How many descriptors and mappings of SharedMemoryFile there are.
struct SegmentCounts {
    int descriptors = 0;
    int mappings = 0;
    bool operator==(const SegmentCounts&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const SegmentCounts& counts) {
    return out << counts.descriptors << " descriptors and " << counts.mappings << " mappings";
}

/// Finds them by their name, which no other descriptor of the process has.
inline SegmentCounts segment_counts() {
    constexpr const char* kName = "symm-host-segment";
    SegmentCounts counts;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;  // another thread may close it meanwhile
        const auto target = std::filesystem::read_symlink(entry, gone);
        counts.descriptors += !gone && target.string().find(kName) != std::string::npos;
    }
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        counts.mappings += line.find(kName) != std::string::npos;
    }
    return counts;
}

}  // namespace symm
