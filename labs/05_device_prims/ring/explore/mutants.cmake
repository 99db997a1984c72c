# The ring's protocols, each without one order, sync, wait or check (cmake/Mutants.cmake).
symm_explored_mutant(ring simple_posts_before_move simple/1 "data race"
  FILE labs/05_device_prims/ring/simple.hpp
  OLD [[sender_.post({StepMode::kNormal, 0, bytes, bytes});]] NEW ""
  OLD [[if (kMove.received_in_place && direct) {]]
  NEW [[if constexpr (kMove.send) {
            sender_.post({StepMode::kNormal, 0, bytes, bytes});
        }
        if (kMove.received_in_place && direct) {]])
symm_explored_mutant(ring simple_releases_before_move simple/1 "data race"
  FILE labs/05_device_prims/ring/simple.hpp
  OLD [[receiver_.release();]] NEW ""
  OLD [[if (kMove.received_in_place && direct) {]]
  NEW [[if constexpr (kMove.receive) {
            receiver_.release();
        }
        if (kMove.received_in_place && direct) {]])

# Others read the counts before thread 0 has them.
symm_explored_mutant(ring ll_no_sync_after_begin ll/2 "data race on r[01].shared"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[group.sync();]] NEW "")
# Data is overwritten before it has been read.
symm_explored_mutant(ring ll_no_credit ll/1 "no thread can go on"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[wait_for_credit();]] NEW "")
# Others read the head before thread 0 has seen it.
symm_explored_mutant(ring ll_no_sync_after_head ll/2 "data race on r0.shared"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[shared_->head = head_.seen();
        }
        group_.sync();]]
  NEW [[shared_->head = head_.seen();
        }]])
symm_explored_mutant(ring ll_no_sync_before_next_head ll/2/10 "data race on r0.shared"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[group_.sync();  // no write]] NEW [[// no write]])
# Thread 0 releases the slot while others still read.
symm_explored_mutant(ring ll_no_sync_before_head ll/2 "no thread can go on"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[group_.sync();
        gave_up_ = simt::load(gave_up,]]
  NEW [[gave_up_ = simt::load(gave_up,]])
# The next kernel begins with old steps.
symm_explored_mutant(ring ll_no_counts ll/1/2 "no thread can go on|instead of"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[*ends_.from_prev.step = received_;
            *ends_.to_next.step = sent_;]]
  NEW "")
# A slow thread reads another's answer of the next step.
symm_explored_mutant(ring ll_one_gave_up ll/2 "waits at a barrier"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[received_ % 2]] NEW [[0]])
symm_explored_mutant(ring ll_credit_shares_a_word ll/2/relay "waits at a barrier"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[simt::store(&shared_->gave_up[2],]] NEW [[simt::store(&shared_->gave_up[sent_ % 2],]]
  OLD [[simt::load(&shared_->gave_up[2],]] NEW [[simt::load(&shared_->gave_up[sent_ % 2],]])
symm_explored_mutant(ring ll_forgets_giving_up ring/ll/2x1 "has given up, and stores"
  FILE labs/05_device_prims/ring/ll_steps.hpp
  OLD [[if (gave_up_) {
            return;
        }]]
  NEW "")
symm_explored_mutant(ring ll_sends_without_data ring/ll/3x1 "has given up, and stores"
  FILE labs/05_device_prims/ring/ll.hpp
  OLD [[kMove.send && arrived]] NEW [[kMove.send]])
symm_explored_mutant(ring one_flag ll/1 "instead of"
  FILE labs/05_device_prims/ll_packet.hpp
  OLD [[ && flag1 == flag]] NEW "")

# A lane without a flag waits for none.
symm_explored_mutant(ring line_own_flag ll128/32 "instead of"
  FILE common/simt/ll128_line.hpp
  OLD [[return seen == flag;]] NEW [[return seen == flag || !has_line_flag(warp);]])
symm_explored_mutant(ring line_no_sync ll128/32 "instead of"
  FILE common/simt/ll128_line.hpp
  OLD [[warp.sync();]] NEW "")
# The order of the flag alone holds a line together.
symm_explored_mutant(ring line_flag_store_relaxed ll128/32 "instead of"
  FILE common/simt/ll128_line.hpp
  OLD [[value.half[1], Order::kRelease);]] NEW [[value.half[1], Order::kRelaxed);]])
symm_explored_mutant(ring line_flag_load_relaxed ll128/32 "instead of"
  FILE common/simt/ll128_line.hpp
  OLD [[.half[1], Order::kAcquire);]] NEW [[.half[1], Order::kRelaxed);]])

# A packet of 2^32 steps ago passes for a new one.
symm_explored_mutant(ring ll_never_overwrites ll/1/old "instead of"
  FILE labs/05_device_prims/ring/ll.hpp
  OLD [[if (kMove.send && overwrites_whole_slot()) {]] NEW [[if (false) {]])

# The second round's lines may be seen after those of the first.
symm_explored_mutant(ring line_first_round_only ll128/32 "instead of"
  FILE common/simt/ll128_line.hpp
  OLD [[&flags[r * static_cast<int>(kWarpSize)].half[1],]] NEW [[&flags[0].half[1],]])
# A lane that gave up leaves without the others of its warp.
symm_explored_mutant(ring lane_leaves_alone ll128/32/gives_up "a lane goes on"
  FILE common/simt/ll128_line.hpp
  OLD [[return warp.all(arrived);]] NEW [[return arrived;]])
