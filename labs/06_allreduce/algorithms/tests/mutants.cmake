# The mutants of lab 06 (cmake/Mutants.cmake).
symm_mutants(allreduce_mutant LABELS lab06
  SOURCES
  algorithms/tests/copy_kernels.cu
  algorithms/tests/copy_protocol_test.cpp
  algorithms/tests/protocol_kernels.cu
  algorithms/tests/protocol_test.cpp
  algorithms/two_shot_copy/two_shot_copy.cpp
  LINK lab03
  ENVIRONMENT SYMM_EMU_TORN_PACKS=1 SYMM_TIMEOUT=10)

# What two shots have from lab 05.
symm_mutant(allreduce_mutant signal_relaxed TwoShot.* "data race.*TwoShot"
  FILE labs/05_device_prims/signal.hpp
  OLD [[simt::store(flag, value, kOrder)]] NEW [[simt::store(flag, value, simt::Order::kRelaxed)]])
symm_mutant(allreduce_mutant wait_relaxed TwoShot.* "data race.*TwoShot"
  FILE labs/05_device_prims/signal.hpp
  OLD [[simt::load(flag, kOrder)]] NEW [[simt::load(flag, simt::Order::kRelaxed)]])
symm_mutant(allreduce_mutant no_sync_before TwoShot.* "data race.*TwoShot"
  FILE labs/05_device_prims/barrier.hpp
  OLD [[block_.sync();]] NEW "")

# The peer's input may not be written yet.
symm_mutant(allreduce_mutant rendezvous_relaxed TwoShot.* "data race.*TwoShot"
  FILE labs/06_allreduce/algorithms/two_shot/rendezvous.hpp
  OLD [[load_packet<simt::Order::kAcquire>(]] NEW [[load_packet(]])

# Other threads read what is not there yet.
symm_mutant(allreduce_mutant rendezvous_no_sync TwoShot.* "data race.*TwoShot"
  FILE labs/06_allreduce/algorithms/two_shot/rendezvous.hpp
  OLD [[AbortBarrier(block).sync(arrived)]] NEW [[arrived]])

# The data may be read before the flag.
symm_mutant(allreduce_mutant copy_wait_relaxed TwoShotCopy.* "data race.*ReducePiece"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp
  OLD [[wait_signal(waiter, &memory->flag]]
  NEW [[wait_signal<simt::Order::kRelaxed>(waiter, &memory->flag]])

# Other threads read before the data are there.
symm_mutant(allreduce_mutant copy_no_sync TwoShotCopy.* "data race.*ReducePiece"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp
  OLD [[AbortBarrier(block).sync(arrived)]] NEW [[arrived]])

# The peer reduces what has not arrived.
symm_mutant(allreduce_mutant copy_flag_first TwoShotCopy.* "data race|wrong values"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.cpp
  OLD [[
            copy(copies, slot(p, r) + piece(p, k) - piece(p, 0), in + piece(p, k), length(p, k));
            copy(copies, address_of(&memory_.peer(p)->flag[k][r]),
                 address_of(&memory_.local()->round), sizeof(std::uint32_t));]]
  NEW [[
            copy(copies, address_of(&memory_.peer(p)->flag[k][r]),
                 address_of(&memory_.local()->round), sizeof(std::uint32_t));
            copy(copies, slot(p, r) + piece(p, k) - piece(p, 0), in + piece(p, k), length(p, k));]])

# What is gathered has not been reduced.
symm_mutant(allreduce_mutant copy_early_gather TwoShotCopy.* "data race|wrong values"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.cpp
  OLD [[order(stream, copies, reduced_[k]);]] NEW "")

symm_mutant(allreduce_mutant copy_no_piece_barrier TwoShotCopy.IsRight* "data race|wrong values"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.cpp
  OLD [[launch_piece_barrier(copies, {memory_, k, call.timeout});]] NEW "")

# A peer takes what a rank that gave up has pushed for a later call.
symm_mutant(allreduce_mutant copy_untold TwoShotCopy.Tells* "was not told"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp
  OLD [[
        if (!rendezvous.meet(block, timeout, all)) {
            memory.tell_that_it_gave_up(block);]]
  NEW [[
        if (!rendezvous.meet(block, timeout, all)) {]]
  OLD [[
            memory.tell_that_it_gave_up(block);
            return;]]
  NEW [[
            return;]])
symm_mutant(allreduce_mutant copy_trusting TwoShotCopy.DoesNotTrust* "did not fail"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp
  OLD [[require_trust(p);]] NEW "")

# A peer still reads this rank's output.
symm_mutant(allreduce_mutant copy_no_end TwoShotCopy.* "data race|wrong values"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.cpp
  OLD [[launch_end_of_round(stream, {call.barrier, memory_, call.timeout});]] NEW "")

# A fast peer overwrites what has not been read.
symm_mutant(allreduce_mutant one_bank OneShot.IsRight* "in a kernel for a packet"
  FILE labs/06_allreduce/algorithms/scratch.hpp
  OLD [[kBanks = 2]] NEW [[kBanks = 1]])

# A flag of 2^32 calls ago is taken for a new one.
symm_mutant(allreduce_mutant stale_flags OneShot.TakesNoFlag* "wrong values"
  FILE labs/06_allreduce/algorithms/one_shot/one_shot.hpp
  OLD [[clear_unused(block, epoch, packets);]] NEW "")

# Half of a packet, or of a pack, may arrive without the other.
symm_mutant(allreduce_mutant one_flag OneShot.IsRight* "wrong values"
  FILE labs/05_device_prims/ll_packet.hpp
  OLD [[ && flag1 == flag]] NEW "")
symm_mutant(allreduce_mutant sentinel_one_half Sentinel.IsRight* "wrong values"
  FILE labs/06_allreduce/algorithms/sentinel/sentinel_packs.hpp
  OLD [[ && pack.half[1] != kSentinel]] NEW "")
symm_mutant(allreduce_mutant push_one_half TwoShotPush.IsRightCall* "wrong values"
  FILE labs/06_allreduce/algorithms/sentinel/sentinel_packs.hpp
  OLD [[ && pack.half[1] != kSentinel]] NEW "")

# A fast peer overwrites what has not been read.
symm_mutant(allreduce_mutant sentinel_one_bank Sentinel.IsRight*
  "in a kernel for a packet|did not finish|wrong values"
  FILE labs/06_allreduce/algorithms/scratch.hpp
  OLD [[kBanks = 2]] NEW [[kBanks = 1]])

# The receiver waits for ever.
symm_mutant(allreduce_mutant sentinel_in_input Sentinel.Ends* "in a kernel for a packet"
  FILE labs/06_allreduce/algorithms/sentinel/sentinel_packs.hpp
  OLD [[return without_sentinel(pack);]] NEW [[return pack;]])
symm_mutant(allreduce_mutant push_sentinel_in_result TwoShotPush.EndsWhereAResult*
  "in a kernel for a packet"
  FILE labs/06_allreduce/algorithms/two_shot_push/two_shot_push.hpp
  OLD [[without_sentinel(reduction.reduce<T>(pack, ranks))]]
  NEW [[reduction.reduce<T>(pack, ranks)]])

# Two calls later these packs pass for new ones.
symm_mutant(allreduce_mutant sentinel_not_cleared Sentinel.IsRight* "wrong values"
  FILE labs/06_allreduce/algorithms/sentinel/sentinel.hpp
  OLD [[clear(slot_of(p));]] NEW "")
symm_mutant(allreduce_mutant push_not_cleared TwoShotPush.IsRightCall* "wrong values"
  FILE labs/06_allreduce/algorithms/two_shot_push/two_shot_push.hpp
  OLD [[clear_scattered(cut, j);]] NEW "")
symm_mutant(allreduce_mutant push_gather_not_cleared TwoShotPush.IsRightCall*
  "in a kernel for a packet|did not finish|wrong values"
  FILE labs/06_allreduce/algorithms/two_shot_push/two_shot_push.hpp
  OLD [[clear(slot_of(p));]] NEW "")

# A fast peer sends into slots that are cleared after that: as late as relaxed stores may be seen.
symm_mutant(allreduce_mutant push_one_bank TwoShotPush.IsRightCall*
  "in a kernel for a packet|did not finish|wrong values"
  FILE labs/06_allreduce/algorithms/scratch.hpp
  OLD [[kBanks = 2]] NEW [[kBanks = 1]]
  FILE labs/06_allreduce/algorithms/two_shot_push/two_shot_push.hpp
  OLD [[clear_scattered(cut, j);]] NEW ""
  OLD [[arrived = gather(waiter, cut, j);
            }]]
  NEW [[arrived = gather(waiter, cut, j);
            }
            for (unsigned j = first; arrived && cut.has(rank, j); j += all) {
                clear_scattered(cut, j);
            }]])
