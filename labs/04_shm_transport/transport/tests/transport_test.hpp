#pragma once
/// \file
/// Shared by the tests of ShmTransport: buffers with different bytes for each sender and message,
/// and the parameters of the tests.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/ranks/ranks.hpp"
#include "common/test_pattern/test_pattern.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/04_shm_transport/transport/transport.hpp"

namespace symm::testing {

inline constexpr std::size_t kMost = 64 * 1024;

/// Small slots, so that a short message uses each of them many times.
inline TransportOptions small_slots(std::optional<HostPath> path = {}) {
    TransportOptions options;
    options.slot_bytes = 256;
    options.path = path;
    return options;
}

/// A rank's buffers, and the bytes that they hold.
struct Buffers {
    explicit Buffers(const Rank& rank)
        : source(rank.device(), kMost), destination(rank.device(), kMost) {}

    static unsigned char byte(int sender, unsigned message, std::size_t index) {
        const auto seed = static_cast<std::uint32_t>(sender) * 1000 + message;
        return static_cast<unsigned char>(test_pattern::word(seed, index) >> 17);
    }
    void fill(int sender, unsigned message) {
        std::vector<unsigned char> data(kMost);
        for (std::size_t i = 0; i < kMost; ++i) {
            data[i] = byte(sender, message, i);
        }
        copy_to_device(source.base(), data.data(), kMost);
        std::fill(data.begin(), data.end(), 0xa5);
        copy_to_device(destination.base(), data.data(), kMost);
    }
    /// Expects the message from `sender`, and after it bytes that were not written.
    void expect(int sender, unsigned message, std::size_t bytes) const {
        std::vector<unsigned char> data(kMost);
        copy_to_host(data.data(), destination.base(), kMost);
        for (std::size_t i = 0; i < kMost; ++i) {
            const unsigned char right = i < bytes ? byte(sender, message, i) : 0xa5;
            ASSERT_EQ(data[i], right) << "byte " << i << " of message " << message << ", " << bytes
                                      << " bytes from rank " << sender;
        }
    }
    Transfer to(int peer, std::size_t bytes) const { return {peer, source.base(), bytes}; }
    Transfer from(int peer, std::size_t bytes) const { return {peer, destination.base(), bytes}; }

    DeviceBuffer source;
    DeviceBuffer destination;
    Stream stream;
};

/// One of two ranks, with its buffers and a transport to the other.
struct OneOfTwo {
    explicit OneOfTwo(Rank& rank, const TransportOptions& options = small_slots())
        : rank(rank),
          peer(1 - rank.rank()),
          buffers(rank),
          transport(rank, std::span(&peer, 1), options) {}

    void send(std::size_t bytes) { transport.send(buffers.to(peer, bytes), stream()); }
    void receive(std::size_t bytes) { transport.receive(buffers.from(peer, bytes), stream()); }
    void send_receive(std::size_t bytes) {
        transport.send_receive(buffers.to(peer, bytes), buffers.from(peer, bytes), stream());
    }
    void finish() { transport.finish(buffers.stream); }
    /// Each sends a message to the other one, and checks what it receives.
    void exchange(unsigned message, std::size_t bytes) {
        buffers.fill(rank.rank(), message);
        send_receive(bytes);
        finish();
        buffers.expect(peer, message, bytes);
    }
    CUstream stream() const { return buffers.stream.get(); }

    Rank& rank;
    int peer;
    Buffers buffers;
    ShmTransport transport;
};

/// Whether ranks are threads or processes, and which host memory they share.
struct Way {
    RankMode mode;
    HostPath path;
};
inline void PrintTo(const Way& way, std::ostream* out) {
    *out << name_of(way.mode) << ", " << name_of(way.path);
}
/// A test that runs in each way that this machine has.
class Transport : public ::testing::TestWithParam<Way> {
protected:
    void SetUp() override {
        ASSERT_GT(device_count(), 0);
        if (GetParam().path == HostPath::kCuMem && probe_host_path(0).path != HostPath::kCuMem) {
            GTEST_SKIP() << probe_host_path(0).why_not_cumem;
        }
    }
};

inline const auto kWays = ::testing::Values(
    Way{RankMode::kThread, HostPath::kCuMem}, Way{RankMode::kThread, HostPath::kPosix},
    Way{RankMode::kProcess, HostPath::kCuMem}, Way{RankMode::kProcess, HostPath::kPosix});
inline std::string name_of_way(const ::testing::TestParamInfo<Way>& info) {
    return std::string(name_of(info.param.mode)) + "_" + std::string(name_of(info.param.path));
}

}  // namespace symm::testing
