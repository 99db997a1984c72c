# The ladder with a fault in each rung (cmake/Mutants.cmake). One build has all of them, since no
# test runs two rungs. mutants.ladder_mutant_faulty runs the first.
symm_mutants(ladder_mutant LABELS lab06
  SOURCES algorithms/ladder/ladder.cu algorithms/ladder/ladder_check.cpp
  algorithms/ladder/tests/ladder_test.cpp
  LINK lab05
  ENVIRONMENT SYMM_TIMEOUT=10)

set(ladder labs/06_allreduce/algorithms/ladder)
symm_mutant(ladder_mutant faulty */through_the_host "data race|elements are wrong"
  # Inputs are overwritten while a slow rank still reads them.
  FILE ${ladder}/1_through_host.hpp
  OLD [[        rank_.bootstrap().barrier("all ranks have read the inputs");]] NEW ""
  # Slots are read before peers have written them.
  FILE ${ladder}/2_barrier.hpp
  OLD [[if (!all.arrive_and_wait()) {]] NEW [[block.sync(); if (false) {]]
  # Flags that are the same in each call: an old packet passes for a new one.
  FILE ${ladder}/3_packets.hpp OLD [[        epochs->store(block, epoch);]] NEW ""
  # A slot that is not emptied passes for a new pack, two calls later.
  FILE ${ladder}/4_sentinel.hpp OLD [[        clear(slot);]] NEW ""
  # The next call's input is written while a slow rank still reads this one.
  FILE ${ladder}/5_two_shots.hpp
  OLD [[if (all.arrive_and_wait()) {  // all outputs]] NEW [[if (true) {  // all outputs]]
  # Sums are taken before they have arrived.
  FILE ${ladder}/6_push.hpp
  OLD [[take(waiter, slot(rank, p, epoch, sums + j), {simt::Wait::kPacket, rank, p, epoch},
                     sum);]]
  NEW [[sum = simt::load_relaxed(slot(rank, p, epoch, sums + j));]]
  # A row's squares are overwritten while a slow thread still adds up those of the row before.
  FILE ${ladder}/fused.hpp
  OLD [[        block.sync();  // all threads have read]] NEW [[        //]])
foreach(rung barrier packets sentinel two_shots push)
  symm_mutant_case(ladder_mutant faulty ${rung} */${rung} "data race|elements are wrong")
endforeach()
symm_mutant_case(ladder_mutant faulty two_launches */two_launches "data race|normalized element")
