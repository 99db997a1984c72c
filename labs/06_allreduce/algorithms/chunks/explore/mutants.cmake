# The mutants of two shots in chunks and of their turns (cmake/Mutants.cmake).

# A chunk may be read before it has arrived: the wait does not acquire, or threads do not wait for
# the block's other threads, which push or poll.
symm_explored_mutant(06_chunks wait_relaxed chunks/2x1 "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[wait_signal(waiter_, &(own]] NEW [[wait_signal<simt::Order::kRelaxed>(waiter_, &(own]])
symm_explored_mutant(06_chunks no_sync_before chunks/2x2 "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[block_.sync();
            for]]
  NEW [[for]])
symm_explored_mutant(06_chunks no_sync_after chunks/2x2 "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[return together_.sync(arrived);]] NEW [[return arrived;]])
# An old flag passes for a new one.
symm_explored_mutant(06_chunks not_counted chunks/2x1 "data race on r[01].slot|instead of"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[own.steps[b] = told.steps;]] NEW "")
# Threads read the count while another changes it: a call without steps has no sync.
symm_explored_mutant(06_chunks counted_early chunks/2x2/gathers "data race on r[01].steps"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[told.steps != first.steps && block]] NEW [[block]])
# The sums' flags answer for the inputs, or the other way round.
symm_explored_mutant(06_chunks one_inbox chunks/2x1/no_windows
  "data race on r[01].sum slot|instead of"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[if (!wait(&ChunksMemory::shared, step)) {]] NEW [[if (!wait(&ChunksMemory::sent, step)) {]])
# The last round's sums stay in the slots.
symm_explored_mutant(06_chunks not_unpacked chunks/2x1/no_windows "instead of"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[return !call_.unpacks || unpack(at - round_, told.shares);]] NEW [[return true;]])
# The rest lies where the packs do.
symm_explored_mutant(06_chunks rest_on_packs chunks/2x1/in_place
  "data race on r[01].slot|instead of"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[per_part(packs) * sizeof(simt::Pack16)};]] NEW [[0};]])
# A peer has not yet written its part of the output.
symm_explored_mutant(06_chunks no_end chunks/2x1 "data race on r[01].out|instead of"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[if (!end.arrive_and_wait()) {]] NEW [[if (false) {]])
# The number of steps wraps.
symm_explored_mutant(06_chunks no_wrap chunks/2x1/wrap "data race on r[01].slot"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[if (told.steps != first.steps &&]] NEW [[if (told.steps > first.steps &&]])
# One count for both flags: that of the inbox used less falls behind, until it seems ahead.
symm_explored_mutant(06_chunks one_count chunks/2x1/no_windows/lag
  "data race on r[01].sum slot|instead of"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[const Told first{own.steps[b], own.shares[b]};]]
  NEW [[const Told first{own.steps[b], own.steps[b]};]])
# Later copies of a rank that gave up overwrite slots that its peers still read.
symm_explored_mutant(06_chunks untold chunks/2x1 "gave up and has not told"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[            trust.tell_peers(block);]] NEW "")

# A turn is passed to nobody, or twice; or it is still begun in the next call.
symm_explored_mutant(06_chunks turn_lost chunks/3x1 "no thread can go on: r0.b0.t0 polls r0.begin"
  FILE labs/06_allreduce/algorithms/turns/turns.hpp
  OLD [[if (ended == blocks_ - blocks_ / 5 &&]] NEW [[if (ended > blocks_ &&]])
symm_explored_mutant(06_chunks turn_passed_twice chunks/3x1x2 "leaves turn"
  FILE labs/06_allreduce/algorithms/turns/turns.hpp
  OLD [[if (ended == blocks_ - blocks_ / 5 &&]] NEW [[if (ended >= 1 &&]])
symm_explored_mutant(06_chunks turn_kept chunks/3x1 "leaves turn"
  FILE labs/06_allreduce/algorithms/turns/turns.hpp
  OLD [[simt::store(&own.begin[now_], std::uint32_t{0}, simt::Order::kRelaxed);]] NEW "")
symm_explored_mutant(06_chunks blocks_not_reset chunks/3x1
  "no thread can go on: r0.b0.t0 polls r0.begin"
  FILE labs/06_allreduce/algorithms/turns/turns.hpp
  OLD [[simt::store(&own.ended[now_], std::uint32_t{0}, simt::Order::kRelaxed);]] NEW "")
# A block ends a turn before its first thread has seen it begin, so the word is reset too early.
symm_explored_mutant(06_chunks turn_alone chunks/3x2 "leaves turn"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[together_.sync(block_.thread_rank() != 0 || turns_.wait(waiter_));]]
  NEW [[(block_.thread_rank() != 0 || turns_.wait(waiter_));]])

# The parts of a call that is made in pieces lie further apart than those of a piece.
symm_explored_mutant(06_chunks parts_of_piece chunks/2x1/pieces/reduce_scatter
  "element 0: 1603 instead of 2403"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[per_part_ * sizeof(Pack) : call_.part_bytes);]]
  NEW [[per_part_ * sizeof(Pack) : call_.bytes());]])
