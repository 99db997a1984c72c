# Mutants that only scenes by rule find (cmake/Mutants.cmake).

# Only some ranks' outputs are unaligned.
symm_explored_mutant(06_windows_by_rule own_alignment by_rule/all_reduce/two_shot/2x1/out
  "not aligned"
  FILE labs/06_allreduce/algorithms/two_shot/two_shot.hpp
  OLD [[bits |= all[p].in | all[p].out;]] NEW [[bits |= all[p].in;]])

# The last rank of a chain sends, too: with few steps that goes unnoticed.
symm_explored_mutant(06_ring_by_rule no_last by_rule/ring/ll/broadcast/3x1/nine
  "no thread can go on"
  FILE labs/05_device_prims/ring/ring.hpp
  OLD [[before(ranks_ - 1) == call_.root]] NEW [[false]])
