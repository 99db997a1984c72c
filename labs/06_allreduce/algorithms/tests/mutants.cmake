# The mutants of lab 06 (cmake/Mutants.cmake).
symm_mutants(allreduce_mutant LABELS lab06
  SOURCES
  algorithms/tests/chunks_test.cu
  algorithms/tests/copy_kernels.cu
  algorithms/tests/copy_protocol_test.cpp
  algorithms/tests/protocol_kernels.cu
  algorithms/tests/protocol_test.cpp
  algorithms/peer_slots/slot_memory.cpp
  algorithms/copy/copy.cpp
  LINK lab03
  ENVIRONMENT SYMM_EMU_TORN_PACKS=1 SYMM_TIMEOUT=10)

# The peer is told of inputs, or of sums, that have not arrived.
symm_mutant(allreduce_mutant copy_told_early Copy.* "data race|wrong values"
  FILE labs/06_allreduce/algorithms/copy/copy.cpp
  OLD [[order(inputs_.stream.get(), stream, inputs_.arrived);]] NEW "")
symm_mutant(allreduce_mutant copy_sums_told_early Copy.* "data race|wrong values"
  FILE labs/06_allreduce/algorithms/copy/copy.cpp
  OLD [[order(sums_.stream.get(), stream, sums_.arrived);]] NEW "")

# Pushes inputs, or sends sums, that have not been written yet.
symm_mutant(allreduce_mutant copy_early_push Copy.* "data race|wrong values"
  FILE labs/06_allreduce/algorithms/copy/copy.cpp
  OLD [[    wait_for(begun_, reduces ? inputs_.stream.get() : sums_.stream.get());]] NEW "")
symm_mutant(allreduce_mutant copy_early_send Copy.* "data race|wrong values"
  FILE labs/06_allreduce/algorithms/copy/copy.cpp
  OLD [[            wait_for(summed_.at(static_cast<std::size_t>(k)), sums_.stream.get());]] NEW "")

# A peer uses data that a rank that gave up has pushed for a later call.
symm_mutant(allreduce_mutant chunks_trusting Chunks.DoesNotTrust* "did not fail"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[trust.require(block, timeout);]] NEW "")

# A peer still reads the slots that the next round overwrites.
symm_mutant(allreduce_mutant copy_no_end Copy.* "data race|wrong values"
  FILE labs/06_allreduce/algorithms/copy/copy.hpp
  OLD [[if (!end.arrive_and_wait()) {]] NEW [[if (false) {]])

# The receiver waits forever.
symm_mutant(allreduce_mutant sentinel_in_input Sentinel.Ends* "in a kernel for a packet"
  FILE labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp
  OLD [[return without_sentinel(pack);]] NEW [[return pack;]])
