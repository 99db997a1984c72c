# Work in shared memory with one order or sync less (cmake/Mutants.cmake).

# A thread reads what another is still copying.
symm_mutants(load_mutant LABELS lab05
  SOURCES shared_work/tests/load_parallel_test.cu LINK symm_cuda)
symm_mutant(load_mutant load_no_sync * "data race.*BeginKernel"
  FILE labs/05_device_prims/shared_work/load_parallel.hpp
  OLD [[block.sync();]] NEW "")

symm_mutants(work_mutant LABELS lab05
  SOURCES shared_work/tests/work_fifo_test.cu shared_work/work_fifo.cpp LINK symm_cuda)

# Items are overwritten that others still read.
symm_mutant(work_mutant work_no_sync_before_load *FromParameters "data race.*load_parallel"
  FILE labs/05_device_prims/shared_work/work_batch.hpp
  OLD [[block.sync();
                load(block]]
  NEW [[load(block]])

# Items are read, and released, before they are there.
symm_mutant(work_mutant work_no_sync_after_load *FromParameters "data race.*load_parallel"
  FILE labs/05_device_prims/shared_work/work_batch.hpp
  OLD [[load(block, shared, from);
                block.sync();]]
  NEW [[load(block, shared, from);]])

# The host overwrites what is not loaded yet.
symm_mutant(work_mutant work_consumed_before_load *NamesTheBlock* "no failure"
  FILE labs/05_device_prims/shared_work/work_batch.hpp
  OLD [[release(block, from + items)]] NEW [[release(block, count)]])

# The loads race with the host's next items.
symm_mutant(work_mutant work_consumed_relaxed *WaitsForFree*
  "data race.*WorkFifo.*Previous read.*load_parallel"
  FILE labs/05_device_prims/shared_work/work_batch.hpp
  OLD [[simt::store(&consumed[c], first + items, simt::Order::kRelease)]]
  NEW [[simt::store(&consumed[c], first + items, simt::Order::kRelaxed)]])

# The next items race with their predecessors' loads.
symm_mutant(work_mutant work_host_relaxed *WaitsForFree*
  "data race.*WorkFifo.*Previous read.*load_parallel"
  FILE labs/05_device_prims/shared_work/work_fifo.cpp
  OLD [[simt::load(consumed() + c, simt::Order::kAcquire)]]
  NEW [[simt::load(consumed() + c, simt::Order::kRelaxed)]])

# The host overwrites items that are not loaded yet.
symm_mutant(work_mutant work_no_wait *WaitsForFree* "after item|data race.*WorkFifo"
  FILE labs/05_device_prims/shared_work/work_fifo.cpp
  OLD [[slowest().behind > options_.entries - needed]] NEW [[false]])
