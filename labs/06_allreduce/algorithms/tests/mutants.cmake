# The mutants of lab 06 (cmake/Mutants.cmake).
symm_mutants(allreduce_mutant LABELS lab06
  SOURCES
  algorithms/tests/chunks_test.cu
  algorithms/tests/protocol_kernels.cu
  algorithms/tests/protocol_test.cpp
  LINK lab03
  ENVIRONMENT SYMM_EMU_TORN_PACKS=1 SYMM_TIMEOUT=10)

# A peer uses data that a rank that gave up has pushed for a later call.
symm_mutant(allreduce_mutant chunks_trusting Chunks.DoesNotTrust* "did not fail"
  FILE labs/06_allreduce/algorithms/chunks/chunks.hpp
  OLD [[trust.require(block, timeout);]] NEW "")

# The receiver waits forever.
symm_mutant(allreduce_mutant sentinel_in_input Sentinel.Ends* "in a kernel for a packet"
  FILE labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp
  OLD [[return without_sentinel(pack);]] NEW [[return pack;]])
