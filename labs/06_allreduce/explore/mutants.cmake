# The algorithms with one order, sync, bank or check less (cmake/Mutants.cmake).

# Lab 05's primitives, as two shots use them.
symm_explored_mutant(06_windows signal_relaxed two_shot/2x1 "data race on r[01].(in|out)"
  FILE labs/05_device_prims/signal.hpp
  OLD [[simt::store(flag, value, kOrder)]] NEW [[simt::store(flag, value, simt::Order::kRelaxed)]])
symm_explored_mutant(06_windows no_sync_before two_shot/2x2 "data race on r[01].(in|out)"
  FILE labs/05_device_prims/barrier.hpp
  OLD [[block_.sync();]] NEW "")
symm_explored_mutant(06_windows two_shot_no_barrier two_shot/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/two_shot/two_shot.hpp
  OLD [[if (end.arrive_and_wait()) {]] NEW [[{]])

# The peer's input may not be written yet.
symm_explored_mutant(06_windows rendezvous_relaxed two_shot/2x1 "data race on r[01].in"
  FILE labs/06_allreduce/algorithms/two_shot/rendezvous.hpp
  OLD [[load_packet<simt::Order::kAcquire>(]] NEW [[load_packet(]])
# Other threads read addresses that are not there yet.
symm_explored_mutant(06_windows rendezvous_no_sync two_shot/2x2
  "accesses address|data race on r[01].shared"
  FILE labs/06_allreduce/algorithms/two_shot/rendezvous.hpp
  OLD [[AbortBarrier(block).sync(arrived)]] NEW [[arrived]])
symm_explored_mutant(06_windows rendezvous_one_flag two_shot/2x1 "accesses address"
  FILE labs/05_device_prims/ll_packet.hpp
  OLD [[ && flag1 == flag]] NEW "")
symm_explored_mutant(06_windows rendezvous_same_epoch two_shot/2x1 "data race on|instead of"
  FILE labs/06_allreduce/algorithms/two_shot/rendezvous.hpp
  OLD [[->epoch[b] = epoch;]] NEW [[->epoch[b] = 0;]])

# A fast peer overwrites data that has not been read.
symm_explored_mutant(06 one_bank one_shot/2x1 "no thread can go on"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[kBanks = 2]] NEW [[kBanks = 1]])
# A flag of many calls ago passes for a new one.
symm_explored_mutant(06 stale_flags clear/one_shot/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[        clear_unused(block, used);]] NEW "")
symm_explored_mutant(06 clears_used_slot one_shot/2x2 "no thread can go on"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[if (i >= used) {]] NEW [[{]])
symm_explored_mutant(06 epoch_parity one_shot/2x1/wrap "no thread can go on"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[epoch == 0 ? 2 : epoch]] NEW [[epoch == 0 ? 1 : epoch]])
symm_explored_mutant(06 epoch_no_sync one_shot/2x2 "data race on r[01].epochs"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[block.sync();
        for]]
  NEW [[for]])
# A rank gave up, and a peer takes its later data for the data that it never sent.
symm_explored_mutant(06 one_shot_after_giving_up one_shot/2x1 "has given up, and stores"
  FILE labs/06_allreduce/algorithms/one_shot/one_shot.hpp
  OLD [[ && !mailbox.gave_up()]] NEW "")
symm_explored_mutant(06 sentinel_after_giving_up sentinel/2x1 "has given up, and stores"
  FILE labs/06_allreduce/algorithms/sentinel/sentinel.hpp
  OLD [[ && !mailbox.gave_up()]] NEW "")
symm_explored_mutant(06 one_pack_after_giving_up one_pack/2x1 "has given up, and stores"
  FILE labs/06_allreduce/algorithms/sentinel/one_pack.hpp
  OLD [[ && !mailbox.gave_up()]] NEW "")
symm_explored_mutant(06 push_after_giving_up push/2x1 "has given up, and stores"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[if (!mailbox.gave_up()) {]] NEW [[{]])

# Half of a packet, or of a pack, may arrive without the other.
symm_explored_mutant(06 one_flag one_shot/2x1 "instead of"
  FILE labs/05_device_prims/ll_packet.hpp
  OLD [[ && flag1 == flag]] NEW "")
symm_explored_mutant(06 sentinel_one_half sentinel/2x1 "nan instead of"
  FILE labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp
  OLD [[ && pack.half[1] != kSentinel]] NEW "")
symm_explored_mutant(06 push_one_half push/2x1 "nan instead of"
  FILE labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp
  OLD [[ && pack.half[1] != kSentinel]] NEW "")
symm_explored_mutant(06 sentinel_one_bank sentinel/2x1 "instead of|no thread can go on"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[kBanks = 2]] NEW [[kBanks = 1]])

# Two calls later these packs pass for new ones.
symm_explored_mutant(06 sentinel_not_cleared sentinel/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/sentinel/sentinel.hpp
  OLD [[mailbox.clear(p, i);]] NEW "")
symm_explored_mutant(06 one_pack_not_cleared one_pack/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/sentinel/one_pack.hpp
  OLD [[mailbox.clear(p, i);]] NEW "")
symm_explored_mutant(06 one_pack_one_half one_pack/2x1 "nan instead of"
  FILE labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp
  OLD [[ && pack.half[1] != kSentinel]] NEW "")
symm_explored_mutant(06 push_not_cleared push/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[mailbox.clear(peer(step), j, kScatter);]] NEW "")
symm_explored_mutant(06 push_gather_not_cleared push/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[mailbox.clear(p, j, kGather);]] NEW "")
# Ranks with empty parts are not ordered: one clears a slot after the other has sent into it.
symm_explored_mutant(06 push_no_fence push/3x1/mixed "no thread can go on"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[cuda::atomic_thread_fence(cuda::std::memory_order_acq_rel, cuda::thread_scope_system);]]
  NEW "")
# A block without work does not count the call: the others do, and one block's next call differs.
symm_explored_mutant(06 push_idle_not_counted push/2x1x2/fewer "no thread can go on"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[        if (!mailbox.gave_up()) {
            for (unsigned j]] NEW [[        if (first >= cut.per_part) {
            return;
        }
        if (!mailbox.gave_up()) {
            for (unsigned j]])
# A fast peer sends into slots that are cleared afterwards.
symm_explored_mutant(06 push_one_bank push/2x1 "no thread can go on|instead of"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[kBanks = 2]] NEW [[kBanks = 1]])

# ReduceScatter and AllGather. A rank that gave up sends; an old flag passes for a new one; a peer
# still reads the input, or has not yet written its part of the output.
symm_explored_mutant(06 half_after_giving_up reduce_scatter/packets/2x1 "has given up, and stores"
  FILE labs/06_allreduce/algorithms/reduce_scatter_all_gather/packets.hpp
  OLD [[ && !mailbox.gave_up()]] NEW "")
symm_explored_mutant(06 half_stale_flags clear/all_gather/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[        clear_unused(block, used);]] NEW "")
# A call with a root: nobody says that it is there; slots that only some ranks use are never
# cleared; the root's buffer is in no window, and a peer takes its part of address 0.
symm_explored_mutant(06 root_runs_ahead broadcast/packets/2x1 "instead of|no thread can go on"
  FILE labs/06_allreduce/algorithms/reduce_scatter_all_gather/packets.hpp
  OLD [[return i == 0 || (]] NEW [[return (]])
symm_explored_mutant(06 roots_slots_not_cleared clear/broadcast/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/reduce_scatter_all_gather/packets.hpp
  OLD [[is_sent(p, rank, 1) ? packets : 1]] NEW [[p < ranks ? packets : 1]])
symm_explored_mutant(06_windows root_not_alone reduce/two_shot/2x1/alone
  "accesses address|instead of"
  FILE labs/06_allreduce/algorithms/two_shot/two_shot.hpp
  OLD [[if (is_roots_alone(all)) {]] NEW [[if (false) {]])
symm_explored_mutant(06_windows reduce_scatter_no_barrier reduce_scatter/two_shot/2x1
  "data race on r[01].in|instead of"
  FILE labs/06_allreduce/algorithms/two_shot/two_shot.hpp
  OLD [[if (end.arrive_and_wait()) {]] NEW [[{]])
symm_explored_mutant(06_windows all_gather_no_barrier all_gather/two_shot/2x1
  "data race on r[01].out|instead of"
  FILE labs/06_allreduce/algorithms/two_shot/two_shot.hpp
  OLD [[if (end.arrive_and_wait()) {]] NEW [[{]])

# Where numbers wrap, where a launch has fewer blocks than the one before, and where the input looks
# like unwritten memory.
symm_explored_mutant(06_windows rendezvous_no_wrap two_shot/2x1/wrap "instead of"
  FILE labs/06_allreduce/algorithms/two_shot/rendezvous.hpp
  OLD [[in.has_flag(epoch) && out.has_flag(epoch)]]
  NEW [[in.flag0 >= epoch && in.flag1 >= epoch && out.flag0 >= epoch && out.flag1 >= epoch]])
symm_explored_mutant(06 epochs_of_this_grid one_shot/2x1x2/grids "instead of"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[b < kMaxBlocks; b +=]] NEW [[b < block.dim_blocks(); b +=]])
symm_explored_mutant(06 sentinel_is_sent sentinel/2x1/ones "no thread can go on"
  FILE labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp
  OLD [[half == kSentinel ? half >> 1 : half]] NEW [[std::uint64_t{half}]])

# Only where two blocks have two threads each, a call is made in pieces, its last pack is not full,
# only some ranks' buffers are unaligned, or a result has the sentinel's bits.
symm_explored_mutant(06 epochs_of_other_blocks one_shot/2x2x2 "data race on r[01].epochs"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[b = block.group_index() + block.thread_rank() * block.dim_blocks()]]
  NEW [[b = block.grid_rank()]])
symm_explored_mutant(06 parts_of_a_piece reduce_scatter/packets/2x1/pieces "instead of"
  FILE labs/06_allreduce/algorithms/reduce_scatter_all_gather/packets.hpp
  OLD [[(p) * stride]] NEW [[(p) * count]])
symm_explored_mutant(06 sentinel_last_not_cleared sentinel/2x1/odd "instead of"
  FILE labs/06_allreduce/algorithms/sentinel/sentinel.hpp
  OLD [[if (p != rank && p < ranks) {]]
  NEW [[if (p != rank && p < ranks && (i + 1) * kElements <= count) {]])
symm_explored_mutant(06_windows own_alignment two_shot/2x1/unaligned "not aligned"
  FILE labs/06_allreduce/algorithms/two_shot/two_shot.hpp
  OLD [[bits |= all[p].in | all[p].out;]]
  NEW [[bits |= all[rank].in | all[rank].out;]])
symm_explored_mutant(06 push_sentinel_in_result push/2x1/ones "no thread can go on"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[without_sentinel(reduction.reduce<T>(pack, ranks))]]
  NEW [[reduction.reduce<T>(pack, ranks)]])
# Five ranks: two have empty parts, although the others have two packs each.
symm_explored_mutant(06 push_fence_of_one push/5x1/2p "no thread can go on"
  FILE labs/06_allreduce/algorithms/push/push.hpp
  OLD [[if (!cut.has(ranks - 2, 0)) {]]
  NEW [[if (cut.per_part == 1 && !cut.has(ranks - 2, 0)) {]])

# Calls that overlap the kernel before: none waits for it, only rank 0 does, or one thread of each
# block; what the kernel before writes is read before the wait.
symm_explored_mutant(06 no_wait_for_predecessor one_pack/2x1/overlap
  "data race on r[01].(in|epochs)"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[block_.wait_for_predecessor();]] NEW "")
symm_explored_mutant(06 only_rank_0_waits push/2x1/overlap "data race on r1.(in|epochs)"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[block_.wait_for_predecessor();]]
  NEW [[if (call_.rank == 0) { block_.wait_for_predecessor(); }]])
symm_explored_mutant(06 one_thread_waits one_shot/2x2/overlap "data race on r[01].(in|epochs)"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[block_.wait_for_predecessor();]]
  NEW [[if (block_.thread_rank() == 0) { block_.wait_for_predecessor(); }]])
symm_explored_mutant(06 epoch_before_wait reduce_scatter/packets/2x1/overlap
  "data race on r[01].epochs"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[        block_.wait_for_predecessor();
        return call_.epochs->next(block_);]]
  NEW [[        const std::uint32_t epoch = call_.epochs->next(block_);
        block_.wait_for_predecessor();
        return epoch;]])
# Members are initialized in their order: the epoch waits, and the Waiter reads `gave_up`.
symm_explored_mutant(06 gave_up_before_wait sentinel/2x1/overlap "has given up, and stores"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[    std::uint32_t epoch_;
    simt::Waiter waiter_;]]
  NEW [[    simt::Waiter waiter_;
    std::uint32_t epoch_;]])
symm_explored_mutant(06 input_before_wait one_pack/2x1/overlap "data race on r[01].in"
  FILE labs/06_allreduce/algorithms/sentinel/one_pack.hpp
  OLD [[        MailboxSession<Format, kMost> mailbox(block, *this);]]
  NEW [[        const simt::Pack16 early = load_pack<simt::Pack16>(
            reinterpret_cast<const T*>(in) + block.grid_rank() * kElements);
        MailboxSession<Format, kMost> mailbox(block, *this);]]
  OLD [[without_sentinel(load_pack<simt::Pack16>(from))]] NEW [[without_sentinel(early)]])
