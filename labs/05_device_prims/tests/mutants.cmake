# The primitives with one order or sync less (cmake/Mutants.cmake).
symm_mutants(prims_mutant LABELS lab05
  SOURCES tests/prims_mutants_test.cpp latency_kernels.cu LINK lab03)
symm_mutant(prims_mutant signal_relaxed PingPong.* "data race.*PingPong::"
  FILE labs/05_device_prims/signal.hpp
  OLD [[simt::store(flag, value, kOrder)]] NEW [[simt::store(flag, value, simt::Order::kRelaxed)]])
symm_mutant(prims_mutant wait_relaxed PingPong.* "data race.*PingPong::"
  FILE labs/05_device_prims/signal.hpp
  OLD [[simt::load(flag, kOrder)]] NEW [[simt::load(flag, simt::Order::kRelaxed)]])
symm_mutant(prims_mutant no_sync_before BarrierRounds.* "data race.*BarrierRounds::"
  FILE labs/05_device_prims/barrier.hpp
  OLD [[block_.sync();]] NEW "")
symm_mutant(prims_mutant no_sync_after BarrierRounds.* "data race.*BarrierRounds::"
  FILE labs/05_device_prims/barrier.hpp
  OLD [[all_.sync(arrived)]] NEW [[arrived]])

# The others go on without the thread that gave up.
symm_mutants(abort_mutant LABELS lab05 SOURCES tests/abort_barrier_test.cu LINK symm_cuda)
symm_mutant(abort_mutant abort_leaves_alone * "went on alone"
  FILE labs/05_device_prims/abort_barrier.hpp
  OLD [[aborted_ = block_.sync_or(aborted_ || !all_is_well);
        return !aborted_;]]
  NEW [[block_.sync();
        return all_is_well;]])
