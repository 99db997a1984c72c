#pragma once
/// \file
/// How ranks that no launcher of ours has started find each other: they agree on a name, under
/// which they then join() (socket_bootstrap.hpp).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace symm {

/// The name of the socket where ranks of this user meet. A hash: every user can see the names of
/// sockets.
std::string socket_name(std::string_view name);

/// Puts the `bytes` bytes at `mine` of every rank into `all`, by rank. Returns 0 for success.
using Allgather = std::function<int(const void* mine, void* all, std::size_t bytes)>;

/// A name that no other run has, on which the ranks agree by one allgather. Throws
/// std::invalid_argument if the bytes are not those of `ranks` ranks of one machine with the same
/// `version` of the library, std::runtime_error if the allgather fails.
std::string name_by_allgather(int rank, int ranks, std::uint32_t version,
                              const Allgather& allgather);

}  // namespace symm
