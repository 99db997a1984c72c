# The mutants of one shot by sentinels (cmake/Mutants.cmake).

# A rank gave up, and a peer takes its later data for the data that it never sent.
symm_explored_mutant(06_sentinel after_giving_up sentinel/2x1 "has given up, and stores"
  FILE labs/06_allreduce/algorithms/sentinel/sentinel.hpp
  OLD [[ && !mailbox.gave_up()]] NEW "")
symm_explored_mutant(06_sentinel one_pack_after_giving_up one_pack/2x1 "has given up, and stores"
  FILE labs/06_allreduce/algorithms/sentinel/one_pack.hpp
  OLD [[ && !mailbox.gave_up()]] NEW "")
# Half of a pack may arrive without the other.
symm_explored_mutant(06_sentinel one_half sentinel/2x1 "nan instead of"
  FILE labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp
  OLD [[ && pack.half[1] != kSentinel]] NEW "")
symm_explored_mutant_case(06_sentinel one_half one_pack_one_half one_pack/2x1 "nan instead of")
# A fast peer sends into slots that are cleared afterwards.
symm_explored_mutant(06_sentinel one_bank sentinel/2x1 "instead of|no thread can go on"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[kBanks = 2]] NEW [[kBanks = 1]])
symm_explored_mutant(06_sentinel epoch_no_sync sentinel/2x2 "data race on r[01].epochs"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[block.sync();
        for]]
  NEW [[for]])
# Two calls later these packs pass for new ones.
symm_explored_mutant(06_sentinel not_cleared sentinel/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/sentinel/sentinel.hpp
  OLD [[mailbox.clear(p, i);]] NEW "")
symm_explored_mutant(06_sentinel one_pack_not_cleared one_pack/2x1 "instead of"
  FILE labs/06_allreduce/algorithms/sentinel/one_pack.hpp
  OLD [[mailbox.clear(p, i);]] NEW "")
# The input looks like unwritten memory.
symm_explored_mutant(06_sentinel is_sent sentinel/2x1/ones "no thread can go on"
  FILE labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp
  OLD [[half == kSentinel ? half >> 1 : half]] NEW [[std::uint64_t{half}]])
# The last pack is not full.
symm_explored_mutant(06_sentinel last_not_cleared sentinel/2x1/odd "instead of"
  FILE labs/06_allreduce/algorithms/sentinel/sentinel.hpp
  OLD [[if (p != rank && p < ranks) {]]
  NEW [[if (p != rank && p < ranks && (i + 1) * kElements <= count) {]])
# Calls that overlap the kernel before: they do not wait for it.
symm_explored_mutant(06_sentinel no_wait_for_predecessor one_pack/2x1/overlap
  "data race on r[01].(in|epochs)"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[block_.wait_for_predecessor();]] NEW "")
# Members are initialized in their order: the epoch waits, and the Waiter reads `gave_up`.
symm_explored_mutant(06_sentinel gave_up_before_wait sentinel/2x1/overlap "has given up, and stores"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[    std::uint32_t before_;
    simt::Waiter waiter_;]]
  NEW [[    simt::Waiter waiter_;
    std::uint32_t before_;]])
# What the kernel before writes is read before the wait.
symm_explored_mutant(06_sentinel input_before_wait one_pack/2x1/overlap "data race on r[01].in"
  FILE labs/06_allreduce/algorithms/sentinel/one_pack.hpp
  OLD [[        MailboxSession<Format, kMost> mailbox(block, *this);]]
  NEW [[        const simt::Pack16 early = load_pack<simt::Pack16>(
            reinterpret_cast<const T*>(in) + block.grid_rank() * kElements);
        MailboxSession<Format, kMost> mailbox(block, *this);]]
  OLD [[without_sentinel(
                load_pack<simt::Pack16>(reinterpret_cast<const T*>(in) + i * kElements))]]
  NEW [[without_sentinel(early)]])
# Threads without a pack run ahead, and count.
symm_explored_mutant(06_sentinel idle_ahead sentinel/2x1x2/idle "data race on r[01].epochs"
  FILE labs/06_allreduce/algorithms/mailbox/mailbox.hpp
  OLD [[block_.wait_for_predecessor();]]
  NEW [[if (4 * block_.grid_rank() < call_.count) { block_.wait_for_predecessor(); }]])
