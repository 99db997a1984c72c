// The order of a ring's steps, without kernels: ranks are threads of the host, and a rank's data
// waits in a queue until the next rank receives it.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/tests/waste.hpp"
#include "labs/05_device_prims/ring/ring.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;
using Element = std::uint64_t;

struct Chunk : std::vector<Element> {
    using vector::vector;
    bool in_place = false;  // stored into the next rank's output, not into a slot
};

class Queue {
public:
    void push(Chunk chunk) {
        const std::lock_guard lock(mutex_);
        chunks_.push_back(std::move(chunk));
        arrived_.notify_one();
    }
    // Returns false if nothing came in time.
    bool pop(Chunk& chunk) {
        std::unique_lock lock(mutex_);
        if (!arrived_.wait_for(lock, 2s, [&] { return !chunks_.empty(); })) {
            return false;
        }
        chunk = std::move(chunks_.front());
        chunks_.pop_front();
        return true;
    }
    bool empty() {
        const std::lock_guard lock(mutex_);
        return chunks_.empty();
    }

private:
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<Chunk> chunks_;
};

// A protocol, for Primitives: one rank's side. It ends with the first wrong step.
class InQueues {
public:
    InQueues(Queue& from_prev, Queue& to_next, const Chunk& input, const Chunk& output)
        : from_prev_(from_prev), to_next_(to_next), input_(input), output_(output) {}

    template <Move kMove>
    void step(const Element* source, Element* output, std::size_t count) {
        if (!fault_.empty()) {
            return;
        }
        ++steps_;
        Chunk chunk(count);
        if (kMove.source && count > 0) {
            if (&input_ != &output_ && source >= output_.data() &&
                source < output_.data() + output_.size()) {
                return fail("reads the output");
            }
            if (source + count > input_.data() + input_.size()) {
                return fail("reads beyond the end of the input");
            }
            std::copy_n(source, count, chunk.begin());
        }
        if (kMove.receive) {
            Chunk came;
            if (!from_prev_.pop(came)) {
                return fail("waits for data that no rank sends");
            }
            if (came.size() != count) {
                return fail("expects " + std::to_string(count) + " elements and gets " +
                            std::to_string(came.size()));
            }
            if (came.in_place != kMove.received_in_place) {
                return fail(came.in_place ? "looks into a slot, but its chunk is in the output"
                                          : "looks into the output, but its chunk is in a slot");
            }
            std::transform(came.begin(), came.end(), chunk.begin(), chunk.begin(), std::plus{});
        }
        if (kMove.output) {
            std::copy(chunk.begin(), chunk.end(), output);
        }
        if (kMove.send) {
            ++sends_;
            chunk.in_place = kMove.sent_in_place;
            to_next_.push(std::move(chunk));
        }
    }

    int sends() const { return sends_; }
    /// Empty if there is none.
    const std::string& fault() const { return fault_; }

private:
    void fail(const std::string& what) { fault_ = "step " + std::to_string(steps_) + " " + what; }

    Queue& from_prev_;
    Queue& to_next_;
    const Chunk& input_;
    const Chunk& output_;
    int steps_ = 0;
    int sends_ = 0;
    std::string fault_;
};

// Element i of rank r: a digit that depends on i, and r zeros. So each rank has one digit of the
// sum, and all digits of a sum are the same.
Element element_of(int rank, std::size_t i) {
    return rank == 0 ? 1 + i % 9 : 10 * element_of(rank - 1, i);
}
Element sum_of(int ranks, std::size_t i) {
    return ranks == 0 ? 0 : element_of(ranks - 1, i) + sum_of(ranks - 1, i);
}

// An AllReduce by `channels` channels, one after the other: in place, a second channel that adds up
// the same elements would find sums. A step has at most `most` elements. Returns how often each
// rank sends.
int all_reduce(int ranks, std::size_t count, unsigned channels, std::size_t most, bool in_place) {
    const auto n = static_cast<std::size_t>(ranks);
    std::vector<Queue> queues(n);
    std::vector<int> sends(n);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < n; ++rank) {
        threads.emplace_back([&, rank] {
            const int me = static_cast<int>(rank);
            Chunk input(count);
            for (std::size_t i = 0; i < count; ++i) {
                input[i] = element_of(me, i);
            }
            Chunk other(count);
            Chunk& output = in_place ? input : other;
            const RingParams<Element> call{Collective::kAllReduce,
                                           {ReduceOp::kSum, ranks},
                                           input.data(),
                                           output.data(),
                                           count,
                                           ring_chunk(count, channels, n, most, 1),
                                           0,
                                           {}};
            InQueues protocol(queues[rank], queues[(rank + 1) % n], input, output);
            for (unsigned channel = 0; channel < channels; ++channel) {
                Ring(protocol, call, channel, channels, me, ranks).run();
            }
            sends[rank] = protocol.sends();
            ASSERT_EQ(protocol.fault(), "") << "rank " << me << " of " << ranks;
            for (std::size_t i = 0; i < count; ++i) {
                ASSERT_EQ(output[i], sum_of(ranks, i))
                    << "element " << i << " of rank " << me << " of " << ranks
                    << (output[i] == 2 * sum_of(ranks, i) ? ": twice the sum" : "");
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (std::size_t rank = 0; rank < n && !::testing::Test::HasFailure(); ++rank) {
        EXPECT_TRUE(queues[rank].empty()) << "rank " << rank << " did not receive all";
        if (sends[rank] != sends[0]) {
            testing::waste("rank " + std::to_string(rank) + " makes another number of steps");
        }
    }
    return sends[0];
}

TEST(RingOrder, OfAllReduce) {
    for (const int ranks : {2, 3, 4}) {
        for (const std::size_t count : {24, 23, 1}) {
            for (const unsigned channels : {1, 2}) {
                for (const bool in_place : {false, true}) {
                    all_reduce(ranks, count, channels, channels == 1 ? 100 : 2, in_place);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

// A protocol that moves nothing, and adds up the elements that are complete.
struct Complete {
    template <Move kMove>
    void step(const Element*, const Element*, std::size_t count) {
        if (++steps > 100) {
            throw std::runtime_error("a ring that goes round without end");
        }
        elements += kMove.output ? count : 0;
    }
    int steps = 0;
    std::size_t elements = 0;
};

TEST(RingOrder, OfAllReduceOfMoreThan2To32Elements) {
    constexpr std::size_t kCount = (std::size_t{1} << 33) + 5;
    Element first = 0;
    const RingParams<Element> call{Collective::kAllReduce,
                                   {ReduceOp::kSum, 2},
                                   &first,
                                   &first,
                                   kCount,
                                   std::size_t{1} << 31,
                                   0,
                                   {}};
    Complete protocol;
    Ring(protocol, call, 0, 1, 0, 2).run();
    EXPECT_EQ(protocol.elements, kCount);
}

// As in the table: so the first n steps alone are a ReduceScatter.
struct Completed {
    template <Move kMove>
    void step(const Element* source, const Element*, std::size_t) {
        if (kMove.source && kMove.output) {
            chunk = source;
        }
    }
    const Element* chunk = nullptr;
};

TEST(RingOrder, OfAllReduceGivesARankItsOwnChunk) {
    constexpr int kRanks = 3;
    constexpr std::size_t kChunk = 2;
    const Chunk input(kRanks * kChunk);
    Chunk output(kRanks * kChunk);
    const RingParams<Element> call{Collective::kAllReduce,
                                   {ReduceOp::kSum, kRanks},
                                   input.data(),
                                   output.data(),
                                   input.size(),
                                   kChunk,
                                   0,
                                   {}};
    for (int rank = 0; rank < kRanks; ++rank) {
        Completed protocol;
        Ring(protocol, call, 0, 1, rank, kRanks).run();
        EXPECT_EQ(protocol.chunk, input.data() + static_cast<std::size_t>(rank) * kChunk)
            << "rank " << rank << " completes another rank's chunk";
    }
}

// Two turns.
TEST(RingOrder, SendsNoMoreThanItMust) {
    EXPECT_EQ(all_reduce(4, 4001, 1, 1000, false), 2 * 2 * 3);
}

}  // namespace
}  // namespace symm
