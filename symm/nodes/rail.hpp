#pragma once
/// \file
/// Sends host memory between a rail's ranks, from machine to machine: all that a staged exchange
/// needs from a network.

#include <cstddef>
#include <string_view>

#include "common/sys/deadline.hpp"

namespace symm {

/// One rank's side. Both calls are collective and wait, until the deadline: then they throw
/// std::runtime_error naming a machine that did not arrive. Used by one thread at a time, except
/// for fail().
class Rail {
public:
    virtual ~Rail() = default;

    virtual int machine() const = 0;
    virtual int machines() const = 0;

    /// Machine m's `from` has a part of `bytes` for each machine. `to` gets part `machine()` of
    /// each, in the order of the machines.
    virtual void all_to_all(const std::byte* from, std::byte* to, std::size_t bytes,
                            Deadline deadline) = 0;
    /// `to` gets each machine's `from`, of `bytes`, in the order of the machines. `from` may lie in
    /// its place in `to`.
    virtual void all_gather(const std::byte* from, std::byte* to, std::size_t bytes,
                            Deadline deadline) = 0;
    /// Ends the calls of all machines that can be notified. From any thread.
    virtual void fail(std::string_view text) noexcept = 0;
};

}  // namespace symm
