# The mutants of the other collectives by packets (cmake/Mutants.cmake).

# A rank that gave up sends; an old flag passes for a new one.
symm_explored_mutant(06_packets after_giving_up reduce_scatter/packets/2x1
  "has given up, and stores"
  FILE labs/06_allreduce/algorithms/reduce_scatter_all_gather/packets.hpp
  OLD [[ && !mailbox.gave_up()]] NEW "")
symm_explored_mutant(06_packets stale_flags clear/all_gather/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[        clear_unused(block, used);]] NEW "")
# A call with a root: nobody says that it is there; slots that only some ranks use are never
# cleared.
symm_explored_mutant(06_packets root_runs_ahead broadcast/packets/2x1
  "instead of|no thread can go on"
  FILE labs/06_allreduce/algorithms/reduce_scatter_all_gather/packets.hpp
  OLD [[return i == 0 || (]] NEW [[return (]])
symm_explored_mutant(06_packets roots_slots_not_cleared clear/broadcast/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/reduce_scatter_all_gather/packets.hpp
  OLD [[is_sent(p, rank, 1) ? packets : 1]] NEW [[p < ranks ? packets : 1]])
# A call is made in pieces.
symm_explored_mutant(06_packets parts_of_a_piece reduce_scatter/packets/2x1/pieces "instead of"
  FILE labs/06_allreduce/algorithms/reduce_scatter_all_gather/packets.hpp
  OLD [[(p) * stride]] NEW [[(p) * count]])
# Calls that overlap the kernel before: its count is read before the wait.
symm_explored_mutant(06_packets epoch_before_wait reduce_scatter/packets/2x1/overlap
  "data race on r[01].epochs"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[        block_.wait_for_predecessor();
        return call_.epochs->of_block[block_.group_index()];]]
  NEW [[        const std::uint32_t before = call_.epochs->of_block[block_.group_index()];
        block_.wait_for_predecessor();
        return before;]])
symm_explored_mutant(06_packets idle_ahead reduce_scatter/packets/2x2/idle
  "data race on r[01].epochs"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[block_.wait_for_predecessor();]]
  NEW [[if (2 * block_.grid_rank() < call_.count) { block_.wait_for_predecessor(); }]])
