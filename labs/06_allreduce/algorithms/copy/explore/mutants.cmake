# The mutants of two shots by the copy engine (cmake/Mutants.cmake).

# Inputs or sums may be read before they are there.
symm_explored_mutant(06_copy wait_relaxed copy/2x1 "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/copy/copy_kernels.hpp
  OLD [[wait_signal(waiter, &memory.of(rank)->inputs]]
  NEW [[wait_signal<simt::Order::kRelaxed>(waiter, &memory.of(rank)->inputs]])
symm_explored_mutant(06_copy unpack_relaxed copy/2x1 "data race on r[01].sums"
  FILE labs/06_allreduce/algorithms/copy/copy_kernels.hpp
  OLD [[wait_signal(waiter, &memory.of(rank)->sums]]
  NEW [[wait_signal<simt::Order::kRelaxed>(waiter, &memory.of(rank)->sums]])
symm_explored_mutant(06_copy other_piece copy/2x1 "data race on r[01].sums"
  FILE labs/06_allreduce/algorithms/copy/copy_kernels.hpp
  OLD [[sums[piece][from],]] NEW [[sums[0][from],]])

# Other threads read before the data is there.
symm_explored_mutant(06_copy no_sync copy/2x2 "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/copy/copy_kernels.hpp
  OLD [[AbortBarrier(block).sync(all_here)]] NEW [[all_here]])
symm_explored_mutant(06_copy unpack_no_sync copy/2x2 "data race on r[01].sums"
  FILE labs/06_allreduce/algorithms/copy/copy_kernels.hpp
  OLD [[AbortBarrier(block).sync(is_here)]] NEW [[is_here]])

# The next round overwrites slots that are still read.
symm_explored_mutant(06_copy no_end reduce_scatter/copy/2x1 "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/copy/copy_kernels.hpp
  OLD [[if (!end.arrive_and_wait()) {]] NEW [[if (false) {]])

# The ranks count rounds differently.
symm_explored_mutant(06_copy rounds_differ copy/2x1 "no thread can go on|data race"
  FILE labs/06_allreduce/algorithms/copy/copy_kernels.hpp
  OLD [[++memory.of(barrier.rank)->rounds;]]
  NEW [[memory.of(barrier.rank)->rounds += barrier.rank;]])

# Only the block that tells the peers waits for them.
symm_explored_mutant(06_copy first_block_waits all_gather/copy/2x1x2 "data race on r[01].sums"
  FILE labs/06_allreduce/algorithms/copy/copy_kernels.hpp
  OLD [[is_here = wait_signal(waiter, &memory.of(rank)->sums]]
  NEW [[is_here = block.group_index() != 0 || wait_signal(waiter, &memory.of(rank)->sums]])

# What the host queues: the peer is told of inputs, or of sums, that have not arrived; inputs are
# pushed, or sums sent, that have not been written.
symm_explored_mutant(06_copy told_early copy/2x1 "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/copy/copy_order.hpp
  OLD [[order(kInputs, kPushed, kCaller);]] NEW "")
symm_explored_mutant(06_copy sums_told_early copy/2x1 "data race on r[01].sums"
  FILE labs/06_allreduce/algorithms/copy/copy_order.hpp
  OLD [[order(kSums, kSent, kCaller);]] NEW "")
symm_explored_mutant(06_copy early_push reduce_scatter/copy/2x1 "data race on r[01].in"
  FILE labs/06_allreduce/algorithms/copy/copy_order.hpp
  OLD [[order(kCaller, kBegun, reduces ? kInputs : kSums);]] NEW "")
symm_explored_mutant(06_copy early_send copy/2x1 "data race on r[01].out"
  FILE labs/06_allreduce/algorithms/copy/copy_order.hpp
  OLD [[queue_.wait(kSums, kSummed + k);]] NEW "")
# The wait is for an event as it was recorded before; for that of the first piece; on a stream that
# an AllGather does not use.
symm_explored_mutant(06_copy waits_first copy/2x1 "data race on r[01].(slot|in)"
  FILE labs/06_allreduce/algorithms/copy/copy_order.hpp
  OLD [[        queue_.record(earlier, event);
        queue_.wait(later, event);]]
  NEW [[        queue_.wait(later, event);
        queue_.record(earlier, event);]])
symm_explored_mutant(06_copy first_piece copy/2x1 "data race on r[01].out"
  FILE labs/06_allreduce/algorithms/copy/copy_order.hpp
  OLD [[wait(kSums, kSummed + k)]] NEW [[wait(kSums, kSummed)]])
symm_explored_mutant(06_copy other_stream all_gather/copy/2x1 "data race on r[01].in"
  FILE labs/06_allreduce/algorithms/copy/copy_order.hpp
  OLD [[kBegun, reduces ? kInputs : kSums]] NEW [[kBegun, kInputs]])

# The last part of a round does not fit into a slot.
symm_explored_mutant(06_copy whole_slots copy/2x1/longest "where the scene has no memory"
  FILE labs/06_allreduce/algorithms/copy/copy_order.hpp
  OLD [[? (slot - kPack) *]] NEW [[? slot *]])

# A peer uses data that a rank that gave up has pushed for a later call.
symm_explored_mutant(06_copy untold copy/ends/2x1 "used data of round 2"
  FILE labs/06_allreduce/algorithms/copy/copy_kernels.hpp
  OLD [[            trust.tell_peers(block);]] NEW "")
symm_explored_mutant(06_copy trusting copy/ends/2x1 "used data of round 2"
  FILE labs/06_allreduce/algorithms/copy/copy_kernels.hpp
  OLD [[trust.require(block, timeout);]] NEW "")
