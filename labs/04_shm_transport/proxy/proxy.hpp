#pragma once
/// \file
/// A proxy: a host thread that lets the copy engine move a connection's data. It is the receiver of
/// connection 1 and the sender of connection 2. It checks one channel after the other, and never
/// waits inside a step. README.md has the reasons. Per channel:
///
/// | step s | waits for                | order   | then                                | then stores          | order   |
/// |--------|--------------------------|---------|-------------------------------------|----------------------|---------|
/// | start  | connection 1: tail > s   | acquire | queues the copy, records an event   |                      |         |
/// |        | connection 2: head + 8 > s | acquire |                                   |                      |         |
/// | end    | the event                | driver  | copies the fifo entry               | connection 2: tail = s + 1 | release |
/// |        |                          |         |                                     | connection 1: head = s + 1 | release |

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "common/cuda/device.hpp"
#include "common/cuda/event.hpp"
#include "common/cuda/stream.hpp"
#include "common/sys/service_thread.hpp"
#include "labs/04_shm_transport/connection/fifo.hpp"

namespace symm {

/// The route of a proxy: a channel of one connection, and the channel of another that continues it.
/// The addresses are the same for the thread and for the copy engine.
struct ProxyRoute {
    ConnectionEnd from;
    ConnectionEnd to;
    int peer;  ///< The rank at the other end, for error messages.
};

/// One route and its progress.
class ProxyChannel {
public:
    /// Needs the context of the GPU whose copy engine is used.
    explicit ProxyChannel(const ProxyRoute& route) : route_(route) {}

    /// Does what can be done without waiting. Returns whether it did anything. Throws CudaError,
    /// and std::runtime_error for a step whose data does not lie in the connection's buffer.
    bool progress(CUstream stream);

private:
    bool start_copy(CUstream stream);
    bool end_copy();

    ProxyRoute route_;
    std::uint64_t started_ = 0;  ///< Copies started, so the next step.
    std::uint64_t ended_ = 0;
    FifoEntry entries_[kSteps] = {};  ///< The copies that have not ended.
    std::array<Event, kSteps> copied_;
};

/// The thread, with all routes of a rank in one direction. Starts at construction. Destruction
/// stops it and waits for its copies; steps that are not handed over yet are lost.
class Proxy {
public:
    /// `device` is the rank's; its context is current. `on_failure` is called by the thread when an
    /// error ends it: it should abort the kernels, which would wait for the proxy in vain. Throws
    /// CudaError.
    Proxy(int device, const std::vector<ProxyRoute>& routes, std::function<void()> on_failure);

    /// The error that ended the thread; empty if none has.
    std::string failure() const { return thread_.failure(); }

private:
    /// A proxy that sleeps adds latency; one that polls all the time takes a processor.
    static constexpr int kPollsBeforeSleep = 2000;

    void run(const std::stop_token& stop);

    Device device_;
    Stream stream_;
    std::list<ProxyChannel> channels_;
    ServiceThread thread_;
};

}  // namespace symm
