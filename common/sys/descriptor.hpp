#pragma once
/// \file
/// The owner of a file descriptor.

#include "common/sys/owner.hpp"

namespace symm {

/// Owns one file descriptor and closes it. Move-only; empty holds -1.
class UniqueFd : public Owner<UniqueFd, int> {
public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : Owner(fd) {}

    int get() const { return value_; }
    /// A second descriptor of the same open file, close-on-exec. Throws std::system_error.
    [[nodiscard]] UniqueFd duplicate() const;

    static int none() { return -1; }
    static void give_back(int fd);
};

/// The descriptor, by another number if it has that of a standard stream: a program may have closed
/// these, and what it still writes to them, as we do our log, would go into this file. Empty, with
/// errno set, if there is no other number, or if `fd` is empty.
[[nodiscard]] UniqueFd beside_standard_streams(UniqueFd fd) noexcept;

}  // namespace symm
