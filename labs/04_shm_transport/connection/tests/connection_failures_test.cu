// Errors of the connection: a side that never comes, sizes that differ, entries
// that point outside the buffer.

#include "labs/04_shm_transport/connection/tests/connection_test.hpp"

namespace symm {
namespace {

using namespace testing;

TEST_F(Transfers, ReceiverNamesASenderThatDoesNotCome) {
    make_impatient(b);
    b.fill(1, 0);
    b.start(receiving(b, connection(1), 1000));
    EXPECT_EQ(failure_of(b),
              "rank 1 waited 0.2 s in a kernel for a filled FIFO slot from rank 0: expected 1, saw "
              "0 (block 0, step 0)");
    b.expect(1, 0, 0);  // and nothing was written
}

TEST_F(Transfers, SenderThatGivesUpLeavesTheSlotsAlone) {
    const Views by = connection(1);
    make_impatient(a);
    a.fill(1, 2000);  // 16 slots for a FIFO of 8
    a.start(sending(a, by, 2000));
    EXPECT_EQ(failure_of(a),
              "rank 0 waited 0.2 s in a kernel for a free FIFO slot from rank 1: expected 1, saw 0 "
              "(block 0, step 8)");
    EXPECT_EQ(by.memory->receive[0].tail, 8U);

    // What was sent before is still right, and the rest never comes: no wrong data passes as
    // right.
    make_impatient(b);
    b.fill(1, 0);
    b.start(receiving(b, by, 2000));
    EXPECT_EQ(failure_of(b),
              "rank 1 waited 0.2 s in a kernel for a filled FIFO slot from rank 0: expected 9, saw "
              "8 (block 0, step 8)");
    b.expect(1, 0, 8 * kSlot);
}

TEST_F(Transfers, SenderFillsAllSlotsWhereCountersWrap) {
    const Views by = connection(1);
    make_impatient(a);
    begin_at(by, ~std::uint64_t{0} - 3);
    a.fill(1, 8 * kSlot);
    a.start(sending(a, by, 8 * kSlot));
    EXPECT_EQ(failure_of(a), "") << "there were 8 free slots";
    EXPECT_EQ(by.memory->receive[0].tail, 4U);
}

TEST_F(Transfers, ReceiverNoticesAMessageOfAnotherLength) {
    const Views by = connection(2);
    a.fill(1, 1000);
    b.fill(1, 0);
    a.start(sending(a, by, 1000));
    b.start(receiving(b, by, 1024));
    finish(a);                                  // it fits into the slots
    const std::string failure = failure_of(b);  // of the channel that noticed first
    EXPECT_TRUE(
        failure.starts_with("rank 1 expected 1024 more bytes of a message from rank 0, which sends "
                            "1000: both sides must pass the same number of bytes") ||
        failure.starts_with("rank 1 expected 896 more bytes of a message from rank 0, which sends "
                            "872: both sides must pass the same number of bytes"))
        << failure;
    b.expect(1, 0, 0);
}

TEST_F(Transfers, ReceiverRefusesAnEntryThatPointsOutsideTheBuffer) {
    const Views by = connection(1);
    const std::uint64_t buffer_bytes = by.receiver.end(0).buffer_bytes;
    struct Bad {
        StepMode mode;
        std::uint64_t offset;
        std::uint64_t size;
    };
    for (const Bad& bad : {Bad{StepMode::kOffset, buffer_bytes - 99, 100},
                           Bad{StepMode::kOffset, ~std::uint64_t{0} - 49, 100},
                           Bad{StepMode::kOffset, std::uint64_t{1} << 40, 100},
                           Bad{static_cast<StepMode>(7), 0, 100}}) {
        begin_at(by, 0);
        by.memory->receive[0].fifo[0] = {bad.mode, bad.offset, bad.size, bad.size};
        by.memory->receive[0].tail = 1;
        b.device.make_current();
        b.timeout = KernelTimeout(60s);
        b.fill(1, 0);
        b.start(receiving(b, by, 100));
        EXPECT_EQ(failure_of(b), "rank 1 refused a step of rank 0: its data at offset " +
                                     std::to_string(bad.offset) +
                                     " does not lie in the connection's buffer of " +
                                     std::to_string(buffer_bytes) + " bytes");
        b.expect(1, 0, 0);
        EXPECT_EQ(by.memory->send[0].head, 0U);
    }
}

}  // namespace
}  // namespace symm
