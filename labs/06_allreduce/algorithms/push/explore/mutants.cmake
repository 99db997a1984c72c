# The mutants of two shots by sentinels (cmake/Mutants.cmake).

# A rank gave up, and a peer takes its later data for the data that it never sent.
symm_explored_mutant(06_push after_giving_up push/2x1 "has given up, and stores"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[if (!mailbox.gave_up()) {]] NEW [[{]])
# Half of a pack may arrive without the other.
symm_explored_mutant(06_push one_half push/2x1 "nan instead of"
  FILE labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp
  OLD [[ && pack.half[1] != kSentinel]] NEW "")
# Two calls later these packs pass for new ones.
symm_explored_mutant(06_push not_cleared push/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[mailbox.clear(peer(step), j, kScatter);]] NEW "")
symm_explored_mutant(06_push gather_not_cleared push/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[mailbox.clear(p, j, kGather);]] NEW "")
# Ranks with empty parts are not ordered: one clears a slot after the other has sent into it.
symm_explored_mutant(06_push no_fence push/3x1/mixed "no thread can go on"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[cuda::atomic_thread_fence(cuda::std::memory_order_acq_rel, cuda::thread_scope_system);]]
  NEW "")
# A block without work does not count the call: the others do, and one block's next call differs.
symm_explored_mutant(06_push idle_not_counted push/2x1x2/fewer "no thread can go on"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[        if (!mailbox.gave_up()) {
            for (unsigned j]] NEW [[        if (first >= cut.per_part) {
            return;
        }
        if (!mailbox.gave_up()) {
            for (unsigned j]])
# A fast peer sends into slots that are cleared afterwards.
symm_explored_mutant(06_push one_bank push/2x1 "no thread can go on|instead of"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[kBanks = 2]] NEW [[kBanks = 1]])
# A result has the sentinel's bits.
symm_explored_mutant(06_push sentinel_in_result push/2x1/ones "has the sentinel in elements"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[without_sentinel(reduction.reduce<T>(pack, ranks))]]
  NEW [[reduction.reduce<T>(pack, ranks)]])
# Five ranks: two have empty parts, although the others have two packs each.
symm_explored_mutant(06_push fence_of_one push/5x1/2p "no thread can go on"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[if (!cut.has(ranks - 2, 0)) {]]
  NEW [[if (cut.per_part == 1 && !cut.has(ranks - 2, 0)) {]])
# Calls that overlap the kernel before: only rank 0 waits for it.
symm_explored_mutant(06_push only_rank_0_waits push/2x1/overlap "data race on r1.(in|epochs)"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[block_.wait_for_predecessor();]]
  NEW [[if (call_.rank == 0) { block_.wait_for_predecessor(); }]])
# Calls that overlap the kernel before: the first block alone waits for it.
symm_explored_mutant(06_push first_block_waits push/2x1x2/overlap
  "data race on r[01].(in|epochs)"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[block_.wait_for_predecessor();]]
  NEW [[if (block_.group_index() == 0) { block_.wait_for_predecessor(); }]])
# A rank keeps a sum that it cannot send, so that peers have other bits.
symm_explored_mutant(06_push own_bits push/2x1/ones "has the sentinel in elements"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[        const simt::Pack16 result = without_sentinel(reduction.reduce<T>(pack, ranks));
        for (int step = 1; step < ranks; ++step) {
            mailbox.send(peer(step), j, result, kGather);
        }]]
  NEW [[        const simt::Pack16 result = reduction.reduce<T>(pack, ranks);
        for (int step = 1; step < ranks; ++step) {
            mailbox.send(peer(step), j, without_sentinel(result), kGather);
        }]])
