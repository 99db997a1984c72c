# The unpack queue with one order less (cmake/Mutants.cmake).
symm_mutants(unpack_mutant LABELS lab04
  SOURCES unpack_queue/tests/tcp_unpacker_test.cpp unpack_queue/tcp_unpacker.cpp
          unpack_queue/unpack_launch.cu host_memory/pinned_calloc.cpp
  LINK symm_cuda GTest::gmock)

# The loads of a piece race with its receive.
symm_mutant(unpack_mutant unpack_tail_load_relaxed TcpUnpackerTest.Moves* "data race.*UnpackKernel"
  FILE labs/04_shm_transport/unpack_queue/unpack_queue.hpp
  OLD [[simt::load(&queue->tail, simt::Order::kAcquire)]]
  NEW [[simt::load(&queue->tail, simt::Order::kRelaxed)]])

# The loads of a piece race with the next receive.
symm_mutant(unpack_mutant unpack_head_store_relaxed TcpUnpackerTest.Moves* "data race.*UnpackKernel"
  FILE labs/04_shm_transport/unpack_queue/unpack_queue.hpp
  OLD [[simt::store(head, next, simt::Order::kRelease)]]
  NEW [[simt::store(head, next, simt::Order::kRelaxed)]])

# Thread 0 gives back what others still read.
symm_mutant(unpack_mutant unpack_no_sync TcpUnpackerTest.Moves* "data race.*UnpackKernel"
  FILE labs/04_shm_transport/unpack_queue/unpack_queue.hpp
  OLD [[block.sync();
            if (block.thread_rank() == 0) {]]
  NEW [[if (block.thread_rank() == 0) {]])
