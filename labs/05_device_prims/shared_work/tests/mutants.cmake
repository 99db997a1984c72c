# The work FIFO's host, without an order or a wait (cmake/Mutants.cmake).

symm_mutants(work_mutant LABELS lab05
  SOURCES shared_work/tests/work_fifo_test.cu shared_work/work_fifo.cpp LINK symm_cuda)

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
