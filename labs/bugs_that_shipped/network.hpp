#pragma once
/// \file
/// A network card as far as puts with signals need it, for the explorer: puts that are in flight at
/// the same time arrive in any order. Each lane is a thread that carries one put at a time.
///
/// | who      | does                             | to what             | order   | why                    |
/// |----------|----------------------------------|---------------------|---------|------------------------|
/// | a kernel | waits until the lane is free     | its `done`          | acquire | the put was carried    |
/// | a kernel | writes the put, counts it        | its `put`, `posted` | release | the lane reads the put |
/// | a lane   | writes the value                 | the peer's memory   | plain   | the signal follows     |
/// | a lane   | sets, or adds to, the signal     | the peer's memory   | release | publishes the value    |
/// | a lane   | counts the put                   | its `done`          | release | the lane is free       |

#include <cstdint>

#include "labs/05_device_prims/signal.hpp"

namespace symm::bugs_that_shipped {

/// What a put does to its signal once the value has arrived: NVSHMEM_SIGNAL_SET, or _ADD.
enum class SignalOp { kSet, kAdd };

/// A value for the memory of a peer, and the signal that follows it there.
struct Put {
    std::uint32_t* to;  ///< Null: the lane ends.
    std::uint32_t value;
    std::uint32_t* signal;
    SignalOp op;
    std::uint32_t operand;
};

/// In the memory of the rank that sends, zeroed.
struct Lane {
    Put put;
    std::uint32_t posted;  ///< Puts so far, as `done`.
    std::uint32_t done;
};

/// The network card of a rank. Its kernel has one thread, which alone calls it.
class Network {
public:
    static constexpr unsigned kLanes = 2;

    explicit Network(Lane* lanes) : lanes_(lanes) {}

    /// Returns at once, while the put is in flight: nvshmem_int_put_signal_nbi(). It waits only for
    /// the lane, which carries every second put.
    void put_signal(const Put& put) {
        Lane& lane = lanes_[next_++ % kLanes];
        wait_until(&lane.done, lane.posted);
        lane.put = put;
        signal(&lane.posted, lane.posted + 1);
    }
    /// Waits until all puts have arrived: nvshmem_quiet().
    void quiet() const {
        for (unsigned i = 0; i < kLanes; ++i) {
            wait_until(&lanes_[i].done, lanes_[i].posted);
        }
    }
    /// Ends the lanes.
    void close() {
        for (unsigned i = 0; i < kLanes; ++i) {
            put_signal({});
        }
    }

    /// The thread of a lane.
    static void carry(Lane& lane) {
        for (std::uint32_t number = 1;; ++number) {
            wait_until(&lane.posted, number);
            const Put& put = lane.put;
            if (put.to == nullptr) {
                return;
            }
            *put.to = put.value;
            if (put.op == SignalOp::kSet) {
                signal(put.signal, put.operand);
            } else {
                simt::fetch_add(put.signal, put.operand, simt::Order::kRelease);
            }
            signal(&lane.done, number);
        }
    }

private:
    static void wait_until(const std::uint32_t* counter, std::uint32_t number) {
        simt::await([=] { return has_reached(simt::load(counter, simt::Order::kAcquire), number); },
                    nullptr);
    }

    Lane* lanes_;
    unsigned next_ = 0;
};

}  // namespace symm::bugs_that_shipped
