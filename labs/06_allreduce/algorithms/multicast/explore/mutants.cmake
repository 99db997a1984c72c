# The mutants of the AllReduce by the switch (cmake/Mutants.cmake).

set(symm_multicast labs/06_allreduce/algorithms/multicast/multicast.hpp)
# The bytes are loaded by another address than that by which they were stored.
symm_explored_mutant(06_multicast no_fence multicast/one_shot/2x1 "no fence_alias.. between .*data"
  FILE labs/05_device_prims/multicast_barrier.hpp
  OLD [[simt::fence_alias();  // own addresses before, the multicast address after
]] NEW "
")
# Of several threads, only the first one's block learns that it has given up.
symm_explored_mutant(06_multicast only_thread_0_votes multicast/one_shot/2x2x2 "r..data"
  FILE labs/05_device_prims/multicast_barrier.hpp
  OLD [[block_.sync_or(waiter_.gave_up())]]
  NEW [[block_.sync_or(block_.thread_rank() == 0 && waiter_.gave_up())]])
# Not all inputs are there.
symm_explored_mutant(06_multicast no_first_barrier multicast/one_shot/2x1 "no fence_alias.. between"
  FILE ${symm_multicast}
  OLD [[        if (!barrier.arrive_and_wait()) {
            return;
        }
        if (two_shots) {
            // In]] NEW [[        block.sync();
        if (two_shots) {
            // In]])
# The next call's input replaces one that a peer still loads; or the sums are not there.
foreach(why IN ITEMS "one_shot/instead of" "two_shots/no fence_alias.. between")
  string(REPLACE / ";" why "${why}")
  list(POP_FRONT why shots)
  symm_explored_mutant(06_multicast no_second_barrier_${shots} multicast/${shots}/2x1 "${why}"
    FILE ${symm_multicast}
    OLD [[        if (!barrier.arrive_and_wait()) {
            return;
        }
        if (two_shots) {
            for]] NEW [[        block.sync();
        if (two_shots) {
            for]])
endforeach()
# A rank gave up in one call, and changes in the next what its peers still load.
symm_explored_mutant(06_multicast after_giving_up multicast/one_shot/2x1
  "data race on r[01].data"
  FILE ${symm_multicast}
  OLD [[if (!barrier.gave_up()) {]] NEW [[{]])
# Two ranks add up, and store, the same packs: one of them sums.
symm_explored_mutant(06_multicast each_stores_all multicast/two_shots/2x1 "instead of"
  FILE ${symm_multicast}
  OLD [[static_cast<int>(turn++ % static_cast<unsigned>(ranks)) == rank]] NEW [[turn++ < 1000]])
# The sum of an average.
symm_explored_mutant(06_multicast not_divided by_rule/multicast/one_shot/2x1/average "instead of"
  FILE ${symm_multicast}
  OLD [[return reduction.finish<T>(sum);]] NEW [[return sum;]])
