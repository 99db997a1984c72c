# The mutants of two shots in chunks (cmake/Mutants.cmake).

# A chunk may be read before it has arrived: the wait does not acquire, or threads do not wait for
# the block's other threads, which push or poll.
symm_explored_mutant(06_chunks wait_relaxed chunks/2x1 "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp
  OLD [[wait_signal(waiter, &memory]] NEW [[wait_signal<simt::Order::kRelaxed>(waiter, &memory]])
symm_explored_mutant(06_chunks no_sync_before chunks/2x2 "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp
  OLD [[block.sync();
        for]]
  NEW [[for]])
symm_explored_mutant(06_chunks no_sync_after chunks/2x2 "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp
  OLD [[together.sync(wait(waiter, block, step))]] NEW [[wait(waiter, block, step)]])
# An old flag passes for a new one.
symm_explored_mutant(06_chunks not_counted chunks/2x1 "data race on r[01].slot|instead of"
  FILE labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp
  OLD [[*made = step;]] NEW "")
# Threads read the count while another changes it: a call without steps has no sync.
symm_explored_mutant(06_chunks counted_early chunks/2x2/one "data race on r[01].steps"
  FILE labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp
  OLD [[step != before && block]] NEW [[block]])
# A peer has not yet written its part of the output.
symm_explored_mutant(06_chunks no_end chunks/2x1 "data race on r[01].out|instead of"
  FILE labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp
  OLD [[if (!end.arrive_and_wait()) {]] NEW [[if (false) {]])
# The number of steps wraps.
symm_explored_mutant(06_chunks no_wrap chunks/2x1/wrap "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp
  OLD [[if (step != before &&]] NEW [[if (step > before &&]])
# Later copies of a rank that gave up overwrite slots that its peers still read.
symm_explored_mutant(06_chunks untold chunks/2x1 "gave up and has not told"
  FILE labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp
  OLD [[            trust.tell_peers(block);]] NEW "")
