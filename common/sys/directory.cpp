#include "common/sys/directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

#include "common/sys/remove_on_signal.hpp"

namespace symm {

PrivateDirectory::PrivateDirectory(std::string_view prefix) {
    std::error_code ignored;
    std::filesystem::path root = std::filesystem::temp_directory_path(ignored);
    if (ignored) {
        root = "/tmp";
    }
    std::string name = (root / (std::string(prefix) + "XXXXXX")).string();
    const SignalsHeld until_it_is_announced;
    if (::mkdtemp(name.data()) == nullptr) {
        throw std::system_error(errno, std::generic_category(), "mkdtemp(" + name + ")");
    }
    value_ = name;
    remove_on_signal(value_);
}

void PrivateDirectory::give_back(const std::filesystem::path& path) {
    std::error_code ignored;  // somebody else removed it: as good
    std::filesystem::remove_all(path, ignored);
    keep_on_signal(path);
}

void make_private(const std::filesystem::path& path) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
        throw std::system_error(errno, std::generic_category(), "mkdir(" + path.string() + ")");
    }
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) {  // not stat: a link may point anywhere
        throw std::system_error(errno, std::generic_category(), "lstat(" + path.string() + ")");
    }
    if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 077) != 0) {
        throw std::runtime_error(
            path.string() +
            " is not a directory of this user's alone. Remove it, or chmod 700 it.");
    }
}

}  // namespace symm
