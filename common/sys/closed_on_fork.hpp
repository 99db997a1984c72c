#pragma once
/// \file
/// Descriptors that a child of fork() must not keep open.

#include <span>

#include "common/sys/descriptor.hpp"

namespace symm {

/// While it lives, a child that this process forks has /dev/null in place of these descriptors.
/// Without that a peer would not notice the death of this process: a connection closes only when
/// the last process closes it. (exec closes them too: they are close-on-exec.) Safe from any
/// thread.
class ClosedOnFork {
public:
    /// The descriptors have to outlive this object.
    explicit ClosedOnFork(std::span<const UniqueFd> descriptors);
    ClosedOnFork(const ClosedOnFork&) = delete;
    ClosedOnFork& operator=(const ClosedOnFork&) = delete;
    ~ClosedOnFork();

private:
    std::span<const UniqueFd> descriptors_;
};

}  // namespace symm
