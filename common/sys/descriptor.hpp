#pragma once
/// \file
/// The owner of a file descriptor.

#include <utility>

namespace symm {

/// Owns one file descriptor and closes it. Move-only; empty holds -1.
class UniqueFd {
public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;
    ~UniqueFd() { reset(); }

    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    /// Gives the descriptor to the caller, who closes it.
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }
    /// Closes the descriptor now.
    void reset();
    /// A second descriptor of the same open file, close-on-exec. Throws std::system_error.
    UniqueFd duplicate() const;

private:
    int fd_ = -1;
};

}  // namespace symm
