#include "common/sys/file.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "common/sys/usage_error.hpp"

namespace symm {

std::string read_file(const std::string& path, std::string_view origin) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
        throw UsageError("{}: this is not a regular file", origin);
    }
    std::ifstream file(path, std::ios::binary);
    std::string text(kMostFileBytes + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (!file.is_open() || file.bad()) {
        throw UsageError("{}: the file cannot be read: {}", origin, std::strerror(errno));
    }
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMostFileBytes) {
        throw UsageError("{}: the file is larger than {} MiB", origin, kMostFileBytes >> 20);
    }
    return text;
}

void require_output_file(const std::string& path, std::string_view origin) {
    if (path.empty()) {
        throw UsageError("{}: pass the name of a file", origin);
    }
    const std::string folder = std::filesystem::path(path).parent_path();
    struct stat status {};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    if (exists && !S_ISREG(status.st_mode)) {
        throw UsageError("{}: this is not a regular file", origin);
    }
    if (!exists && errno == ENOENT && ::lstat(path.c_str(), &status) == 0) {
        throw UsageError("{}: this is a link to a file that does not exist", origin);
    }
    // Other errors: a loop of links, a name that is too long.
    if (exists ? ::access(path.c_str(), W_OK) != 0
               : errno != ENOENT || ::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK)) {
        throw UsageError("{}: the file cannot be written: {}", origin, std::strerror(errno));
    }
}

void write_file(const std::string& path, std::string_view text, std::string_view origin) {
    require_output_file(path, origin);
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) {
        throw std::system_error(errno, std::generic_category(),
                                fmt::format("{}: the file cannot be written", origin));
    }
}

}  // namespace symm
