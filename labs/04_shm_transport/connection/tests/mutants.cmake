# The connection with one order or sync less (cmake/Mutants.cmake).
symm_mutants(connection_mutant LABELS lab04
  SOURCES connection/tests/connection_test.cu LINK symm_cuda)
symm_mutant(connection_mutant connection_tail_store_relaxed * "data race.*checked_data"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[kPostTail = simt::Order::kRelease]] NEW [[kPostTail = simt::Order::kRelaxed]])
symm_mutant(connection_mutant connection_tail_load_relaxed * "data race.*checked_data"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[kWaitTail = simt::Order::kAcquire]] NEW [[kWaitTail = simt::Order::kRelaxed]])
symm_mutant(connection_mutant connection_head_store_relaxed *
  "Write of.*copy_with_block.*TransferKernel::send"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[kPostHead = simt::Order::kRelease]] NEW [[kPostHead = simt::Order::kRelaxed]])
symm_mutant(connection_mutant connection_head_load_relaxed *
  "Write of.*copy_with_block.*TransferKernel::send"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[kWaitHead = simt::Order::kAcquire]] NEW [[kWaitHead = simt::Order::kRelaxed]])

# Thread 0 posts while others still write.
symm_mutant(connection_mutant connection_no_sync_before_tail *
  "data race.*(copy_with_block|acquire).*TransferKernel"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[void post(const FifoEntry& entry) {
        group_.sync();]]
  NEW [[void post(const FifoEntry& entry) {]])

# Others write before thread 0 has seen the head.
symm_mutant(connection_mutant connection_no_sync_after_head *
  "data race.*acquire.*TransferKernel::send"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[end_.slot(step_) : nullptr;
        }
        group_.sync();]]
  NEW [[end_.slot(step_) : nullptr;
        }]])

# Thread 0 releases while others still read.
symm_mutant(connection_mutant connection_no_sync_before_head *
  "data race.*acquire.*TransferKernel::receive"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[void release() {
        group_.sync();]]
  NEW [[void release() {]])

# Others read before thread 0 has seen the tail.
symm_mutant(connection_mutant connection_no_sync_after_tail *
  "data race.*acquire.*TransferKernel::receive"
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[checked_data(size, left) : nullptr;
        }
        group_.sync();]]
  NEW [[checked_data(size, left) : nullptr;
        }]])
