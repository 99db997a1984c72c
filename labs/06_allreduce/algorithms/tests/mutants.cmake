# The mutants of lab 06 (cmake/Mutants.cmake).
symm_mutants(allreduce_mutant LABELS lab06
  SOURCES
  algorithms/tests/chunks_test.cu
  algorithms/tests/copy_kernels.cu
  algorithms/tests/copy_protocol_test.cpp
  algorithms/tests/protocol_kernels.cu
  algorithms/tests/protocol_test.cpp
  algorithms/two_shot_copy/two_shot_copy.cpp
  LINK lab03
  ENVIRONMENT SYMM_EMU_TORN_PACKS=1 SYMM_TIMEOUT=10)

# The peer reduces data that has not arrived.
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

# Pushes data that has not been written yet.
symm_mutant(allreduce_mutant copy_early_push TwoShotCopy.* "data race|wrong values"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.cpp
  OLD [[order(stream, copies, met_);]] NEW "")

# A peer uses data that a rank that gave up has pushed for a later call.
symm_mutant(allreduce_mutant copy_untold TwoShotCopy.Tells* "was not notified"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp
  OLD [[            memory.tell_peers(block);]] NEW "")
symm_mutant(allreduce_mutant copy_trusting TwoShotCopy.DoesNotTrust* "did not fail"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp
  OLD [[memory.require_trust(block, timeout);]] NEW "")

symm_mutant(allreduce_mutant chunks_untold TwoShotChunks.Tells* "was not notified"
  FILE labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp
  OLD [[            copy.tell_peers(block);]] NEW "")
symm_mutant(allreduce_mutant chunks_trusting TwoShotChunks.DoesNotTrust* "did not fail"
  FILE labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp
  OLD [[copy.require_trust(block, timeout);]] NEW "")

# A peer still writes to this rank's output.
symm_mutant(allreduce_mutant copy_no_end TwoShotCopy.* "data race|wrong values"
  FILE labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.cpp
  OLD [[launch_end_of_round(stream, {call.barrier, memory_, call.timeout});]] NEW "")

# The receiver waits forever.
symm_mutant(allreduce_mutant sentinel_in_input Sentinel.Ends* "in a kernel for a packet"
  FILE labs/06_allreduce/algorithms/sentinel/sentinel_packs.hpp
  OLD [[return without_sentinel(pack);]] NEW [[return pack;]])
symm_mutant(allreduce_mutant push_sentinel_in_result TwoShotPush.EndsWhereAResult*
  "in a kernel for a packet"
  FILE labs/06_allreduce/algorithms/two_shot_push/two_shot_push.hpp
  OLD [[without_sentinel(reduction.reduce<T>(pack, ranks))]]
  NEW [[reduction.reduce<T>(pack, ranks)]])
