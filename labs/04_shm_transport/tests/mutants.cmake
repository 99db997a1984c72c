# The mutants of lab 04 (cmake/Mutants.cmake).

# The connection with one order or sync less.
symm_mutants(connection_mutant LABELS lab04 SOURCES tests/connection_test.cu LINK symm_cuda)
symm_mutant(connection_mutant connection_tail_store_relaxed * "data race.*checked_data"
  FILE labs/04_shm_transport/connection.hpp
  OLD [[kPostTail = simt::Order::kRelease]] NEW [[kPostTail = simt::Order::kRelaxed]])
symm_mutant(connection_mutant connection_tail_load_relaxed * "data race.*checked_data"
  FILE labs/04_shm_transport/connection.hpp
  OLD [[kWaitTail = simt::Order::kAcquire]] NEW [[kWaitTail = simt::Order::kRelaxed]])
symm_mutant(connection_mutant connection_head_store_relaxed *
  "Write of.*copy_with_block.*TransferKernel::send"
  FILE labs/04_shm_transport/connection.hpp
  OLD [[kPostHead = simt::Order::kRelease]] NEW [[kPostHead = simt::Order::kRelaxed]])
symm_mutant(connection_mutant connection_head_load_relaxed *
  "Write of.*copy_with_block.*TransferKernel::send"
  FILE labs/04_shm_transport/connection.hpp
  OLD [[kWaitHead = simt::Order::kAcquire]] NEW [[kWaitHead = simt::Order::kRelaxed]])

# Thread 0 posts while others still write.
symm_mutant(connection_mutant connection_no_sync_before_tail *
  "data race.*(copy_with_block|acquire).*TransferKernel"
  FILE labs/04_shm_transport/connection.hpp
  OLD [[void post(const FifoEntry& entry) {
        group_.sync();]]
  NEW [[void post(const FifoEntry& entry) {]])

# Others write before thread 0 has seen the head.
symm_mutant(connection_mutant connection_no_sync_after_head *
  "data race.*acquire.*TransferKernel::send"
  FILE labs/04_shm_transport/connection.hpp
  OLD [[end_.slot(step_) : nullptr;
        }
        group_.sync();]]
  NEW [[end_.slot(step_) : nullptr;
        }]])

# Thread 0 releases while others still read.
symm_mutant(connection_mutant connection_no_sync_before_head *
  "data race.*acquire.*TransferKernel::receive"
  FILE labs/04_shm_transport/connection.hpp
  OLD [[void release() {
        group_.sync();]]
  NEW [[void release() {]])

# Others read before thread 0 has seen the tail.
symm_mutant(connection_mutant connection_no_sync_after_tail *
  "data race.*acquire.*TransferKernel::receive"
  FILE labs/04_shm_transport/connection.hpp
  OLD [[checked_data(size, left) : nullptr;
        }
        group_.sync();]]
  NEW [[checked_data(size, left) : nullptr;
        }]])

# The allocation fails, and the capture is lost.
symm_mutants(pinned_calloc_mutant LABELS lab04
  SOURCES tests/pinned_calloc_test.cpp pinned_calloc.cpp LINK symm_cuda)
symm_mutant(pinned_calloc_mutant no_exchange *LeavesTheCapture*
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  FILE labs/04_shm_transport/pinned_calloc.cpp
  OLD [[const RelaxedCaptureMode relaxed;]] NEW "")

symm_mutants(unpack_mutant LABELS lab04
  SOURCES tests/tcp_unpacker_test.cpp tcp_unpacker.cpp pinned_calloc.cpp unpack.cu
  LINK symm_cuda GTest::gmock)

# The loads of a piece race with its receive.
symm_mutant(unpack_mutant unpack_tail_load_relaxed TcpUnpackerTest.Moves* "data race.*UnpackKernel"
  FILE labs/04_shm_transport/unpack_queue.hpp
  OLD [[simt::load(&queue->tail, simt::Order::kAcquire)]]
  NEW [[simt::load(&queue->tail, simt::Order::kRelaxed)]])

# The loads of a piece race with the next receive.
symm_mutant(unpack_mutant unpack_head_store_relaxed TcpUnpackerTest.Moves* "data race.*UnpackKernel"
  FILE labs/04_shm_transport/unpack_queue.hpp
  OLD [[simt::store(head, next, simt::Order::kRelease)]]
  NEW [[simt::store(head, next, simt::Order::kRelaxed)]])

# Thread 0 gives back what others still read.
symm_mutant(unpack_mutant unpack_no_sync TcpUnpackerTest.Moves* "data race.*UnpackKernel"
  FILE labs/04_shm_transport/unpack_queue.hpp
  OLD [[block.sync();
            if (block.thread_rank() == 0) {]]
  NEW [[if (block.thread_rank() == 0) {]])
