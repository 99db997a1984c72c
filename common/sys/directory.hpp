#pragma once
/// \file
/// A directory of our own, for sockets.

#include <filesystem>
#include <string_view>

#include "common/sys/owner.hpp"

namespace symm {

/// Owns a fresh directory that only this user may enter (0700), under $TMPDIR or /tmp; removes it
/// with all that is in it, also where a signal ends the process (remove_on_signal.hpp). Move-only.
class PrivateDirectory : public Owner<PrivateDirectory, std::filesystem::path> {
public:
    /// Throws std::system_error. The name starts with `prefix`.
    explicit PrivateDirectory(std::string_view prefix);

    const std::filesystem::path& path() const { return value_; }
    static void give_back(const std::filesystem::path& path);
};

}  // namespace symm
