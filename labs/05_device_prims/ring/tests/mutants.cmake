# The steps of a ring with one order, sync or wait less (cmake/Mutants.cmake).
symm_mutants(steps_mutant LABELS lab05 SOURCES ring/tests/steps_test.cu LINK symm_cuda)
symm_mutant(steps_mutant simple_posts_before_move *BeforeTheyPostIt
  "data race.*move<.*Previous.*move<"
  FILE labs/05_device_prims/ring/simple.hpp
  OLD [[sender_.post({StepMode::kNormal, 0, bytes, bytes});]] NEW ""
  OLD [[if (kMove.received_in_place && direct) {]]
  NEW [[if constexpr (kMove.send) {
            sender_.post({StepMode::kNormal, 0, bytes, bytes});
        }
        if (kMove.received_in_place && direct) {]])
symm_mutant(steps_mutant simple_releases_before_move *BeforeTheyPostIt
  "data race.*move<.*Previous.*move<"
  FILE labs/05_device_prims/ring/simple.hpp
  OLD [[receiver_.release();]] NEW ""
  OLD [[if (kMove.received_in_place && direct) {]]
  NEW [[if constexpr (kMove.receive) {
            receiver_.release();
        }
        if (kMove.received_in_place && direct) {]])

# Others read the counts before thread 0 has them.
symm_mutant(steps_mutant ll_no_sync_after_begin *WaitForTheirCredit
  "data race.*LLSteps.*make_steps"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[group.sync();]] NEW "")

# Data is overwritten before it has been read.
symm_mutant(steps_mutant ll_no_credit *WaitForTheirCredit "Value of: sender.stream.finished"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[wait_for_credit();]] NEW "")

# Others read the head before thread 0 has seen it.
symm_mutant(steps_mutant ll_no_sync_after_head *SameCredit*
  "data race.*wait_for_credit.*Previous.*wait_for_credit"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[shared_->head = head_.seen();
        }
        group_.sync();]]
  NEW [[shared_->head = head_.seen();
        }]])
symm_mutant(steps_mutant ll_no_sync_before_next_head *SameCredit*
  "data race.*wait_for_credit.*Previous.*wait_for_credit"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[group_.sync();  // nobody]] NEW [[// nobody]])

# Thread 0 gives the slot back while others still read.
symm_mutant(steps_mutant ll_no_sync_before_head *GiveASlotBack*
  "for a packet of rank 0: expected [0-9]+, saw"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[group_.sync();
        gave_up_ = simt::load(gave_up,]]
  NEW [[gave_up_ = simt::load(gave_up,]])

# The next kernel begins with old steps.
symm_mutant(steps_mutant ll_no_counts *LastLaunchEnded "wrong element"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[*ends_.from_prev.step = received_;
            *ends_.to_next.step = sent_;]]
  NEW "")
symm_mutant(steps_mutant ll_never_overwrites *FlagsReturn "wrong element"
  FILE labs/05_device_prims/ring/ll.hpp
  OLD [[if (kMove.send && overwrites_whole_slot())]] NEW [[if constexpr (false)]])

# The flags of the other rounds are not looked at.
symm_mutant(steps_mutant line_one_round *LinesWhole "wrong element"
  FILE common/simt/ll128_line.hpp
  OLD [[r < kRounds; ++r) {
        arrived]]
  NEW [[r < 1; ++r) {
        arrived]])

# A lane that has no flag waits for none.
symm_mutant(steps_mutant line_own_flag *LinesWhole "wrong element"
  FILE common/simt/ll128_line.hpp
  OLD [[return seen == flag;]] NEW [[return seen == flag || !has_line_flag(warp);]])
symm_mutant(steps_mutant line_no_sync *SlowLane* "wrong element"
  FILE common/simt/ll128_line.hpp
  OLD [[warp.sync();]] NEW "")

symm_mutants(give_up_mutant LABELS lab05
  SOURCES ring/tests/give_up_test.cu LINK symm_cuda GTest::gmock)

# A slow thread reads what another says in the next step.
symm_mutant(give_up_mutant ll_one_gave_up *InTheSameStep "left in another step"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[received_ % 2]] NEW [[0]])
symm_mutant(give_up_mutant ll_posts_after_giving_up RelayByLL.* "it gave a slot back"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[++received_;
        if (group_.thread_rank() == 0 && !gave_up_) {]]
  NEW [[++received_;
        if (group_.thread_rank() == 0) {]])

# Half of a packet may arrive without the other.
symm_mutant(give_up_mutant one_flag *HalfOfAPacket* "it took a part of the packet"
  FILE labs/05_device_prims/ll_packet.hpp
  OLD [[ && flag1 == flag]] NEW "")
symm_mutant(give_up_mutant simple_forgets_giving_up RelayBySimple.* "it posted a step"
  FILE labs/05_device_prims/ring/simple.hpp
  OLD [[T* sent = nullptr;]]
  NEW [[T* sent = nullptr;
        gave_up_ = false;]])
symm_mutant(give_up_mutant ll_forgets_giving_up RelayByLL.* "it sent data"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[if (gave_up_) {
            return;
        }]]
  NEW "")
symm_mutant(give_up_mutant ll_sends_without_data RelayByLL.* "it sent data"
  FILE labs/05_device_prims/ring/ll.hpp
  OLD [[kMove.send && arrived]] NEW [[kMove.send]])
symm_mutant(give_up_mutant line_sends_without_data RelayByLL128.* "it sent data"
  FILE labs/05_device_prims/ring/ll128.hpp
  OLD [[kMove.send && arrived]] NEW [[kMove.send]])

# Lanes whose line is there go on alone.
symm_mutant(give_up_mutant line_no_vote *LineOfAWarp* "it took a part of the lines"
  FILE common/simt/ll128_line.hpp
  OLD [[warp.all(arrived)]] NEW [[arrived]])

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
