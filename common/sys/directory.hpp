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

/// Makes the directory (0700) or takes the one that is there, if it is a directory of this user
/// that no other may enter: a path in /tmp that others can guess may have been laid out by them.
/// Throws std::runtime_error saying what is wrong with it.
void make_private(const std::filesystem::path& path);

}  // namespace symm
