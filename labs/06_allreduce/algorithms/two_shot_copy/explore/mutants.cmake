# The mutants of two shots by the copy engine (cmake/Mutants.cmake).

# Inputs or sums may be read before they are there.
symm_explored_mutant(06_copy wait_relaxed copy/2x1 "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp
  OLD [[wait_signal(waiter, &memory.of(rank)->inputs]]
  NEW [[wait_signal<simt::Order::kRelaxed>(waiter, &memory.of(rank)->inputs]])
symm_explored_mutant(06_copy unpack_relaxed copy/2x1 "data race on r[01].sums"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp
  OLD [[wait_signal(waiter, &memory.of(rank)->sums]]
  NEW [[wait_signal<simt::Order::kRelaxed>(waiter, &memory.of(rank)->sums]])
symm_explored_mutant(06_copy other_piece copy/2x1 "data race on r[01].sums"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp
  OLD [[sums[piece][from],]] NEW [[sums[0][from],]])

# Other threads read before the data is there.
symm_explored_mutant(06_copy no_sync copy/2x2 "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp
  OLD [[AbortBarrier(block).sync(all_here)]] NEW [[all_here]])
symm_explored_mutant(06_copy unpack_no_sync copy/2x2 "data race on r[01].sums"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp
  OLD [[AbortBarrier(block).sync(is_here)]] NEW [[is_here]])

# The next round overwrites slots that are still read.
symm_explored_mutant(06_copy no_end reduce_scatter/copy/2x1 "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp
  OLD [[if (!end.arrive_and_wait()) {]] NEW [[if (false) {]])

# The ranks count rounds differently.
symm_explored_mutant(06_copy rounds_differ copy/2x1 "no thread can go on|data race"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp
  OLD [[++memory.of(barrier.rank)->rounds;]]
  NEW [[memory.of(barrier.rank)->rounds += barrier.rank;]])
