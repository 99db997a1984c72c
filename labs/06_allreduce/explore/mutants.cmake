# Mutants that only scenes by rule find (cmake/Mutants.cmake).

# Only some ranks' outputs are unaligned.
symm_explored_mutant(06_windows_by_rule own_alignment by_rule/all_reduce/two_shot/2x1/out
  "not aligned"
  FILE labs/06_allreduce/algorithms/two_shot/two_shot.hpp
  OLD [[bits |= all[p].in | all[p].out;]] NEW [[bits |= all[p].in;]])
