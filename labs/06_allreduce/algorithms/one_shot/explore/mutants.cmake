# The mutants of one shot (cmake/Mutants.cmake).

# A fast peer overwrites data that has not been read.
symm_explored_mutant(06_one_shot one_bank one_shot/2x1 "no thread can go on"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[kBanks = 2]] NEW [[kBanks = 1]])
# A flag of many calls ago passes for a new one.
symm_explored_mutant(06_one_shot stale_flags clear/one_shot/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[        clear_unused(block, used);]] NEW "")
symm_explored_mutant(06_one_shot clears_used_slot one_shot/2x2 "no thread can go on"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[if (i >= used) {]] NEW [[{]])
symm_explored_mutant(06_one_shot epoch_parity one_shot/2x1/wrap "no thread can go on"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[epoch == 0 ? 2 : epoch]] NEW [[epoch == 0 ? 1 : epoch]])
symm_explored_mutant(06_one_shot epoch_no_sync one_shot/2x2 "data race on r[01].epochs"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[block.sync();
        for]]
  NEW [[for]])
# A rank gave up, and a peer takes its later data for the data that it never sent.
symm_explored_mutant(06_one_shot after_giving_up one_shot/2x1 "has given up, and stores"
  FILE labs/06_allreduce/algorithms/one_shot/one_shot.hpp
  OLD [[ && !mailbox.gave_up()]] NEW "")
# Half of a packet may arrive without the other.
symm_explored_mutant(06_one_shot one_flag one_shot/2x1 "instead of"
  FILE labs/05_device_prims/ll_packet.hpp
  OLD [[ && flag1 == flag]] NEW "")
# A launch has fewer blocks than the one before.
symm_explored_mutant(06_one_shot epochs_of_this_grid one_shot/2x1x2/grids "instead of"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[b < kMaxBlocks; b +=]] NEW [[b < block.dim_blocks(); b +=]])
# Only where two blocks have two threads each.
symm_explored_mutant(06_one_shot epochs_of_other_blocks one_shot/2x2x2 "data race on r[01].epochs"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[b = block.group_index() + block.thread_rank() * block.dim_blocks()]]
  NEW [[b = block.grid_rank()]])
# Calls that overlap the kernel before: one thread of each block waits for it.
symm_explored_mutant(06_one_shot one_thread_waits one_shot/2x2/overlap
  "data race on r[01].(in|epochs)"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[block_.wait_for_predecessor();]]
  NEW [[if (block_.thread_rank() == 0) { block_.wait_for_predecessor(); }]])
symm_explored_mutant(06_one_shot first_warp_waits one_shot/2x33/overlap
  "data race on r[01].(in|epochs)"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[block_.wait_for_predecessor();]]
  NEW [[if (block_.thread_rank() < 32) { block_.wait_for_predecessor(); }]])
# The sum is rounded before it is divided.
symm_explored_mutant(06_one_shot rounds_twice arithmetic/half/avg "other bits"
  FILE labs/05_device_prims/reduction/reduction.hpp
  OLD [[average(all[i]);]] NEW [[average(static_cast<Wide<T>>(static_cast<T>(all[i])));]])
