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
    UniqueFd duplicate() const;

    static int none() { return -1; }
    static void give_back(int fd);
};

}  // namespace symm
