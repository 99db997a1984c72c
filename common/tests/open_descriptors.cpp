#include <filesystem>
#include <string>

#include "common/tests/meet.hpp"

namespace symm::testing {

int open_descriptors() {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;  // the iterator's own, or another thread's
        const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
        // A pidfd, socket, memfd or file counts; a pipe or an eventfd may be a library's.
        if (!gone && !target.starts_with("pipe:") && target.find("/fd") == std::string::npos &&
            !target.starts_with("anon_inode:[event")) {
            ++count;
        }
    }
    return count;
}

}  // namespace symm::testing
