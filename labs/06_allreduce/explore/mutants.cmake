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

# The last rank of a chain to rank 0 sends, too.
symm_explored_mutant(06_ring_by_rule next_is_root by_rule/ring/simple/broadcast/2x1/nine
  "no thread can go on"
  FILE labs/05_device_prims/ring/ring.hpp
  OLD [[before(ranks_ - 1) == call_.root]] NEW [[rank_ + 1 == call_.root]])
# An average is a sum, but for ranks that end a chain.
symm_explored_mutant(06_ring_by_rule not_divided by_rule/ring/simple/all_reduce/2x1/average
  "element 0: 3 instead of 1"
  FILE labs/05_device_prims/ring/primitives.hpp
  OLD [[return receive && source && output;]] NEW [[return receive && source && !send;]])
# Chunks of so many elements as there should be bytes are longer than a slot.
symm_explored_mutant(06_ring_by_rule bytes_for_elements
  by_rule/ring/simple/all_reduce/2x1x1/chunks_of_host "no thread can go on"
  FILE labs/05_device_prims/ring/ring_kernel.hpp
  OLD [[128 / sizeof(T)),]] NEW [[128),]])
# Each rank begins with its own elements: the ranks' bits differ.
symm_explored_mutant(06_mailbox_by_rule own_first by_rule/one_shot/3x1/order
  "instead of"
  FILE labs/06_allreduce/algorithms/one_shot/one_shot.hpp
  OLD [[reduce<T>(data, ranks)]] NEW [[reduce<T>((std::swap(data[0], data[rank]), data), ranks)]])
