#pragma once
/// \file
/// Ranks for tests of the bootstrap: threads with connected sockets.

#include <fmt/core.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/tests/patient.hpp"

namespace symm::testing {

/// A deadline for waits that are to time out.
inline Deadline soon() {
    return Deadline::after(std::chrono::milliseconds(300));
}

/// How many descriptors of this process are open files or sockets. Pipes do not count: sanitizers
/// open some.
inline int open_descriptors() {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;  // it may be closed by now: the iterator's, or another thread's
        const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
        // Pipes and eventfds do not count: a library may have opened them.
        if (!gone && !target.starts_with("pipe:") && target.find("/fd") == std::string::npos &&
            !target.starts_with("anon_inode:[event")) {
            ++count;
        }
    }
    return count;
}

/// Runs `body` on `size` connected threads. Returns what each threw, empty where nothing.
inline std::vector<std::string> meet(int size, const std::function<void(Bootstrap&)>& body) {
    auto connections = connected_sockets(size);
    std::vector<std::string> errors(static_cast<std::size_t>(size));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            try {
                SocketBootstrap bootstrap(
                    rank, size, std::move(connections[static_cast<std::size_t>(rank)]), patient());
                body(bootstrap);
            } catch (const std::exception& error) {
                errors[static_cast<std::size_t>(rank)] = error.what();
            }
        });
    }
    threads.clear();
    return errors;
}

/// Bytes that are different for each rank and call.
inline std::vector<std::byte> unique_bytes(int rank, int call, std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) {
        bytes[i] = static_cast<std::byte>(rank * 131 + call * 17 + static_cast<int>(i % 251) * 3);
    }
    return bytes;
}

}  // namespace symm::testing
