#include <filesystem>
#include <string>

#include "common/tests/meet.hpp"

namespace symm::testing {

int open_descriptors() {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;  // it may be closed by now: the iterator's, or another thread's
        const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
        // Pipes and eventfds do not count: a library may have opened them.
        if (!gone && !target.starts_with("pipe:") && target.find("/fd") == std::string::npos &&
            !target.starts_with("anon_inode:[event")) {
            ++count;
        }
    }
    return count;
}

}  // namespace symm::testing
