# The connection and the unpack queue, each without one order, sync or check (cmake/Mutants.cmake).
symm_explored_mutant(04 tail_store_relaxed connection/1 "data race on r1.fifo"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[kPostTail = simt::Order::kRelease]] NEW [[kPostTail = simt::Order::kRelaxed]])
symm_explored_mutant(04 tail_load_relaxed connection/1 "data race on r1.fifo"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[kWaitTail = simt::Order::kAcquire]] NEW [[kWaitTail = simt::Order::kRelaxed]])
symm_explored_mutant(04 head_store_relaxed connection/1 "data race on r1.buffer"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[kPostHead = simt::Order::kRelease]] NEW [[kPostHead = simt::Order::kRelaxed]])
symm_explored_mutant(04 head_load_relaxed connection/1 "data race on r1.buffer"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[kWaitHead = simt::Order::kAcquire]] NEW [[kWaitHead = simt::Order::kRelaxed]])

# Thread 0 posts while others still write.
symm_explored_mutant(04 no_sync_before_tail connection/2 "data race"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[void post(const FifoEntry& entry) {
        group_.sync();]]
  NEW [[void post(const FifoEntry& entry) {]])

# Others write before thread 0 has seen the head.
symm_explored_mutant(04 no_sync_after_head connection/2 "r0.shared.*nothing has written"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[end_.slot(step_) : nullptr;
        }
        group_.sync();]]
  NEW [[end_.slot(step_) : nullptr;
        }]])

# Thread 0 releases while others still read.
symm_explored_mutant(04 no_sync_before_head connection/2 "data race"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[void release() {
        group_.sync();]]
  NEW [[void release() {]])

# Others read before thread 0 has seen the tail.
symm_explored_mutant(04 no_sync_after_tail connection/2 "r1.shared.*nothing has written"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[checked_data(size, left) : nullptr;
        }
        group_.sync();]]
  NEW [[checked_data(size, left) : nullptr;
        }]])

# The sender is nine steps ahead.
symm_explored_mutant(04 one_slot_too_many connection/1 "no thread can go on"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[step_ + 1 - kSteps]] NEW [[step_ - kSteps]])

# The caller writes what the receiver has not read yet.
symm_explored_mutant(04 not_drained staged/2 "instead of"
  FILE labs/04_shm_transport/connection/transfer_kernel.hpp
  OLD [[sender.drained();]] NEW [[]])

# The next kernel begins with old steps.
symm_explored_mutant(04 no_step messages/2 "instead of|data race on r1.fifo"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[post_peer<kPostTail>(&end_.receive->tail, step_ + 1);
            *end_.step = step_ + 1;]]
  NEW [[post_peer<kPostTail>(&end_.receive->tail, step_ + 1);]])

# The loads of a piece race with its receive.
symm_explored_mutant(04 unpack_tail_load_relaxed unpack/1x1 "data race on r0.descriptors"
  FILE labs/04_shm_transport/unpack_queue/unpack_queue.hpp
  OLD [[simt::load(&queue->tail, simt::Order::kAcquire)]]
  NEW [[simt::load(&queue->tail, simt::Order::kRelaxed)]])

# The loads of a piece race with the next receive.
symm_explored_mutant(04 unpack_head_store_relaxed unpack/1x1 "data race on r0.bounce"
  FILE labs/04_shm_transport/unpack_queue/unpack_queue.hpp
  OLD [[simt::store(head, next, simt::Order::kRelease)]]
  NEW [[simt::store(head, next, simt::Order::kRelaxed)]])

# Thread 0 releases what others still read.
symm_explored_mutant(04 unpack_no_sync unpack/1x2 "data race on r0.bounce"
  FILE labs/04_shm_transport/unpack_queue/unpack_queue.hpp
  OLD [[block.sync();
            if (block.thread_rank() == 0) {]]
  NEW [[if (block.thread_rank() == 0) {]])

# Others read before thread 0 has seen the tail.
symm_explored_mutant(04 unpack_no_sync_after_tail unpack/1x2 "data race on r0.descriptors"
  FILE labs/04_shm_transport/unpack_queue/unpack_queue.hpp
  OLD [[block.sync();
            const std::uint64_t end]]
  NEW [[const std::uint64_t end]])

# Bytes that no word can move are as few as those behind the last word.
symm_explored_mutant(04 unpack_part_of_bytes unpack/1x2/bytes "byte 5 is wrong"
  FILE labs/04_shm_transport/connection/copy_bytes.hpp
  OLD [[source + done, bytes - done);]] NEW [[source + done, (bytes - done) % 16);]])
# A piece ends before its first whole word.
symm_explored_mutant(04 unpack_no_whole_word unpack/1x1/bytes "where the scene has no memory"
  FILE labs/04_shm_transport/connection/copy_bytes.hpp
  OLD [[% sizeof(simt::Pack16) == 0 && bytes >= sizeof(simt::Pack16)) {]]
  NEW [[% sizeof(simt::Pack16) == 0) {]])

# The last step of a message may still be unread.
symm_explored_mutant(04 drained_early staged/1 "data race on r1.buffer"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[wait_for_head(step_) ?]] NEW [[wait_for_head(step_ - 1) ?]])
symm_explored_mutant(04 counts_do_not_wrap connection/1/wrap "data race on r1"
  FILE labs/04_shm_transport/connection/peer_step.hpp
  OLD [[static_cast<std::int64_t>(seen_ - needed) >= 0]] NEW [[seen_ >= needed]])
symm_explored_mutant(04 unpack_queue_has_no_end unpack/1x2/next "no thread can go on|data race"
  FILE labs/04_shm_transport/unpack_queue/unpack_queue.hpp
  OLD [[= queue->descriptors[next % kUnpackDepth];]] NEW [[= queue->descriptors[next];]])

# The sender begins each kernel as if the receiver had emptied all earlier steps.
symm_explored_mutant(04 begins_with_credit messages/2 "data race on r1.fifo"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[head_(step_ - kSteps) {}]] NEW [[head_(step_) {}]])
# A message that was refused is used, and its slot given back.
symm_explored_mutant(04 takes_another_length messages/1/longer "another length is received"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[ends_.peer, left}, entry.left);
            return nullptr;]]
  NEW [[ends_.peer, left}, entry.left);]])
symm_explored_mutant(04 unpack_refuses_full_queue unpack/full "a full queue is refused"
  FILE labs/04_shm_transport/unpack_queue/unpack_queue.hpp
  OLD [[tail - next > kUnpackDepth]] NEW [[tail - next >= kUnpackDepth]])
