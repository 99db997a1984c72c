#pragma once
/// \file
/// One shot that pushes inputs, of two ranks: the data is the flag. Calls may come from several
/// streams.
///
/// | the kernel of call e             | in whose memory | order   | why                            |
/// |----------------------------------|-----------------|---------|--------------------------------|
/// | stores its input in half e % 2   | the peer's      | release | what it emptied is empty first |
/// | polls until half e % 2 is filled | its own         | acquire | the peer's next data follows   |
/// | empties it again                 | its own         | relaxed | for call e + 2                 |
/// | counts the call                  | its own         | relaxed | for the next kernel            |
///
/// A kernel finds everything as the kernel of the call before has left it. So only one may run at
/// a time in each rank.
///
/// Model of SGLang's custom AllReduce (README.md, "B.4").

#include <cstdint>

#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/bugs_that_shipped/streams.hpp"

namespace symm::bugs_that_shipped {

constexpr std::uint32_t kNotHere = 0;  ///< No input is 0.

/// Memory of a rank.
struct PushMemory {
    std::uint32_t half[2];  ///< kNotHere, or the peer's input.
    std::uint32_t epoch;    ///< How many calls have ended.
};

struct PushOneShot {
    __host__ __device__ void operator()() const {
        using simt::Order;
        PushMemory* const own = memory.of(rank);
        const std::uint32_t epoch = simt::load(&own->epoch, Order::kRelaxed);
        std::uint32_t* const half = &own->half[epoch % 2];
        simt::store(&memory.of(1 - rank)->half[epoch % 2], in, Order::kRelease);
        simt::Waiter waiter(timeout);
        if (waiter.until({simt::Wait::kPacket, rank, 1 - rank, epoch}, [&](std::uint64_t& seen) {
                seen = simt::load(half, Order::kAcquire);
                return seen != kNotHere;
            })) {
            *out = in + simt::load(half, Order::kRelaxed);
            simt::store(half, kNotHere, Order::kRelaxed);
            simt::store(&own->epoch, epoch + 1, Order::kRelaxed);
        }
    }

    SymmetricPointer<PushMemory> memory;
    simt::Timeout timeout;
    int rank;
    std::uint32_t in;
    std::uint32_t* out;
};

/// The host's side of a rank. All ranks make the same calls in the same order.
class PushCommunicator {
public:
    /// `done` is an event that nothing else uses.
    PushCommunicator(const PushOneShot& kernel, Event done) : kernel_(kernel), done_(done) {}

    /// Queues a call in `stream`, which may be another one than that of the last call. The host
    /// does not wait.
    void all_reduce(Stream& stream, std::uint32_t in, std::uint32_t* out) {
        kernel_.in = in;
        kernel_.out = out;
        if (last_ != nullptr && last_ != &stream) {
            stream.wait(done_);
        }
        stream.launch(kernel_);
        stream.record(done_);
        last_ = &stream;
    }

private:
    PushOneShot kernel_;
    Event done_;
    Stream* last_ = nullptr;  ///< Of the last call.
};

}  // namespace symm::bugs_that_shipped
