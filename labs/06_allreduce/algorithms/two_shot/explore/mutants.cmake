# The mutants of two shots (cmake/Mutants.cmake).

# Lab 05's primitives, as two shots use them.
symm_explored_mutant(06_two_shot signal_relaxed two_shot/2x1 "data race on r[01].(in|out)"
  FILE labs/05_device_prims/signal.hpp
  OLD [[simt::store(flag, value, kOrder)]] NEW [[simt::store(flag, value, simt::Order::kRelaxed)]])
symm_explored_mutant(06_two_shot no_sync_before two_shot/2x2 "data race on r[01].(in|out)"
  FILE labs/05_device_prims/barrier.hpp
  OLD [[block_.sync();]] NEW "")
symm_explored_mutant(06_two_shot no_barrier two_shot/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/two_shot/two_shot.hpp
  OLD [[if (end.arrive_and_wait()) {]] NEW [[{]])
# In the collectives that are one shot of the two: a peer still reads the input, or has not yet
# written its part of the output.
symm_explored_mutant_case(06_two_shot no_barrier reduce_scatter_no_barrier
  reduce_scatter/two_shot/2x1 "data race on r[01].in|instead of")
symm_explored_mutant_case(06_two_shot no_barrier all_gather_no_barrier all_gather/two_shot/2x1
  "data race on r[01].out|instead of")
# The peer's input may not be written yet.
symm_explored_mutant(06_two_shot rendezvous_relaxed two_shot/2x1 "data race on r[01].in"
  FILE labs/06_allreduce/algorithms/two_shot/rendezvous.hpp
  OLD [[load_packet<simt::Order::kAcquire>(]] NEW [[load_packet(]])
# Other threads read addresses that are not there yet.
symm_explored_mutant(06_two_shot rendezvous_no_sync two_shot/2x2
  "loads r[01].shared0, which nothing has written"
  FILE labs/06_allreduce/algorithms/two_shot/rendezvous.hpp
  OLD [[AbortBarrier(block).sync(arrived)]] NEW [[arrived]])
symm_explored_mutant(06_two_shot rendezvous_one_flag two_shot/2x1 "accesses address"
  FILE labs/05_device_prims/ll_packet.hpp
  OLD [[ && flag1 == flag]] NEW "")
symm_explored_mutant(06_two_shot rendezvous_same_epoch two_shot/2x1 "data race on|instead of"
  FILE labs/06_allreduce/algorithms/two_shot/rendezvous.hpp
  OLD [[->epoch[b] = epoch;]] NEW [[->epoch[b] = 0;]])
# The root's buffer is in no window, and a peer takes its part of address 0.
symm_explored_mutant(06_two_shot root_not_alone reduce/two_shot/2x1/alone
  "accesses address|instead of"
  FILE labs/06_allreduce/algorithms/two_shot/two_shot.hpp
  OLD [[if (is_roots_alone(all)) {]] NEW [[if (false) {]])
# Where numbers wrap.
symm_explored_mutant(06_two_shot rendezvous_no_wrap two_shot/2x1/wrap "instead of"
  FILE labs/06_allreduce/algorithms/two_shot/rendezvous.hpp
  OLD [[in.has_flag(epoch) && out.has_flag(epoch)]]
  NEW [[in.flag0 >= epoch && in.flag1 >= epoch && out.flag0 >= epoch && out.flag1 >= epoch]])
# Only some ranks' buffers are unaligned.
symm_explored_mutant(06_two_shot own_alignment two_shot/2x1/unaligned "not aligned"
  FILE labs/06_allreduce/algorithms/two_shot/two_shot.hpp
  OLD [[bits |= all[p].in | all[p].out;]]
  NEW [[bits |= all[rank].in | all[rank].out;]])
