# The steps of a ring, each without one order, sync or wait (cmake/Mutants.cmake).
symm_mutants(steps_mutant LABELS lab05 SOURCES ring/tests/steps_test.cu LINK symm_cuda)
symm_mutant(steps_mutant ll_never_overwrites *FlagsReturn "wrong element"
  FILE labs/05_device_prims/ring/ll.hpp
  OLD [[if (kMove.send && overwrites_whole_slot())]] NEW [[if constexpr (false)]])

symm_mutants(give_up_mutant LABELS lab05
  SOURCES ring/tests/give_up_test.cu LINK symm_cuda GTest::gmock)
symm_mutant(give_up_mutant ll_posts_after_giving_up RelayByLL.* "it released a slot"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[++received_;
        if (group_.thread_rank() == 0 && !gave_up_) {]]
  NEW [[++received_;
        if (group_.thread_rank() == 0) {]])
symm_mutant(give_up_mutant simple_forgets_giving_up RelayBySimple.* "it posted a step"
  FILE labs/05_device_prims/ring/simple.hpp
  OLD [[T* sent = nullptr;]]
  NEW [[T* sent = nullptr;
        gave_up_ = false;]])
symm_mutant(give_up_mutant line_sends_without_data RelayByLL128.* "it sent data"
  FILE labs/05_device_prims/ring/ll128.hpp
  OLD [[kMove.send && arrived]] NEW [[kMove.send]])

# Lanes whose line is there go on alone.
symm_mutant(give_up_mutant line_no_vote *LineOfAWarp* "it took a part of the lines"
  FILE common/simt/ll128_line.hpp
  OLD [[warp.all(arrived)]] NEW [[arrived]])

# The flags of the second round are not checked.
symm_mutant(give_up_mutant line_one_round *SecondRound* "it took a part of the lines"
  FILE common/simt/ll128_line.hpp
  OLD [[r < kRounds; ++r) {
        arrived]]
  NEW [[r < 1; ++r) {
        arrived]])

# The two sides may name different sizes.
symm_mutant(give_up_mutant connection_no_size_check *AnotherSize "Which is: \"\""
  FILE labs/04_shm_transport/connection/fifo.hpp
  OLD [[if (entry.left != left || entry.size != size) {]]
  NEW [[size = entry.size;
        left = entry.left;
        if (entry.left != left || entry.size != size) {]])

# Into the next rank's output, though it may not be ready.
symm_mutants(direct_mutant LABELS lab05 SOURCES ring/tests/direct_test.cu LINK symm_cuda)
symm_mutant(direct_mutant direct_too_early *AllGather
  "data race.*memset.*copy_send|data race.*copy_send.*memset"
  FILE labs/05_device_prims/ring/primitives.hpp
  OLD [[Move{.send = true, .source = true, .output = true}]]
  NEW [[Move{.send = true, .source = true, .output = true, .sent_in_place = true}]])
