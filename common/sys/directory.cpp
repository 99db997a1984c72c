#include "common/sys/directory.hpp"

#include <unistd.h>

#include <cerrno>
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

}  // namespace symm
