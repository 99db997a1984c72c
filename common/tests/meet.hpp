#pragma once
/// \file
/// Ranks for tests of the rendezvous: threads that meet in a directory of their own.

#include <fmt/core.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/bootstrap/bootstrap.hpp"
#include "common/sys/directory.hpp"

namespace symm::testing {

/// Long enough for any machine; a test that reaches it has failed.
inline Deadline patient() {
    return Deadline::after(std::chrono::seconds(60));
}
/// A limit that is meant to pass.
inline Deadline soon() {
    return Deadline::after(std::chrono::milliseconds(300));
}

/// Descriptors of this process that are open files or sockets. Pipes do not count: sanitizers open
/// some.
int open_descriptors();

/// Runs `body` on `size` threads that have met. Returns what each threw, empty where nothing.
inline std::vector<std::string> meet(int size, const std::function<void(Bootstrap&)>& body) {
    const PrivateDirectory directory("symm-test-");
    std::vector<std::string> errors(static_cast<std::size_t>(size));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            try {
                Bootstrap meeting = Bootstrap::join({rank, size, directory.path(), 7}, patient());
                body(meeting);
            } catch (const std::exception& error) {
                errors[static_cast<std::size_t>(rank)] = error.what();
            }
        });
    }
    threads.clear();
    return errors;
}

/// Bytes that no other rank and call has.
inline std::vector<std::byte> unique_bytes(int rank, int call, std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) {
        bytes[i] = static_cast<std::byte>(rank * 131 + call * 17 + static_cast<int>(i % 251) * 3);
    }
    return bytes;
}

}  // namespace symm::testing
