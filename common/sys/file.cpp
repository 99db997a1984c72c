#include "common/sys/file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>
#include <system_error>

#include "common/sys/descriptor.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

[[noreturn]] void refuse(std::string_view origin, std::string_view why) {
    throw UsageError("{}: {}", origin, why);
}

std::string text_of_errno() {
    return std::generic_category().message(errno);
}

}  // namespace

std::string read_file(const std::string& path, std::string_view origin) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
        refuse(origin, "this is not a regular file");
    }
    std::ifstream file(path, std::ios::binary);
    std::string text(kMostFileBytes + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (!file.is_open() || file.bad()) {
        refuse(origin, "the file cannot be read: " + text_of_errno());
    }
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMostFileBytes) {
        refuse(origin, fmt::format("the file is larger than {} MiB", kMostFileBytes >> 20));
    }
    return text;
}

void require_output_file(const std::string& path, std::string_view origin) {
    struct stat status {};
    if (path.empty()) {
        refuse(origin, "pass the name of a file");
    }
    if (::stat(path.c_str(), &status) == 0) {
        if (!S_ISREG(status.st_mode)) {
            refuse(origin, "this is not a regular file");
        }
        if (::access(path.c_str(), W_OK) != 0) {
            refuse(origin, "the file cannot be written: " + text_of_errno());
        }
    } else if (errno != ENOENT) {  // a loop of links, a name that is too long
        refuse(origin, "the file cannot be written: " + text_of_errno());
    } else if (::lstat(path.c_str(), &status) == 0) {
        refuse(origin, "this is a link to a file that does not exist");
    }
    const std::string folder = std::filesystem::path(path).parent_path();
    if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) {
        refuse(origin, "the file cannot be written: " + text_of_errno());
    }
}

void write_file(const std::string& path, std::string_view text, std::string_view origin) {
    require_output_file(path, origin);
    std::filesystem::path target = path;
    if (std::filesystem::exists(target)) {
        target = std::filesystem::canonical(target);
    }
    // A name that other users of the folder cannot guess, and no link: they could lead the draft to
    // another file.
    std::random_device random;
    const std::filesystem::path draft =
        target.parent_path() / fmt::format(".symm.{:08x}{:08x}.draft", random(), random());
    const auto fail = [&] {
        const int error = errno;
        ::unlink(draft.c_str());
        throw std::system_error(error, std::generic_category(),
                                fmt::format("{}: the file cannot be written", origin));
    };
    struct stat old {};
    const bool replaces = ::stat(target.c_str(), &old) == 0;
    UniqueFd file(
        ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaces ? 0600 : 0666));
    if (!file) {
        fail();
    }
    if (replaces) {
        // Only root can give a file away, and others only to their own groups.
        std::ignore = ::fchown(file.get(), old.st_uid, static_cast<gid_t>(-1));
        std::ignore = ::fchown(file.get(), static_cast<uid_t>(-1), old.st_gid);
        if (::fchmod(file.get(), old.st_mode & 0777) != 0) {
            fail();
        }
    }
    while (!text.empty()) {
        const ssize_t written = ::write(file.get(), text.data(), text.size());
        if (written < 0) {
            fail();
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    file.reset();
    if (std::rename(draft.c_str(), target.c_str()) != 0) {
        fail();
    }
}

}  // namespace symm
