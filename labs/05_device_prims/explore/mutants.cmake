# The primitives, each without one order, sync or check (cmake/Mutants.cmake).
symm_explored_mutant(05 signal_relaxed signal "data race on number"
  FILE labs/05_device_prims/signal.hpp
  OLD [[simt::store(flag, value, kOrder)]] NEW [[simt::store(flag, value, simt::Order::kRelaxed)]])
symm_explored_mutant(05 wait_relaxed signal "data race on number"
  FILE labs/05_device_prims/signal.hpp
  OLD [[simt::load(flag, kOrder)]] NEW [[simt::load(flag, simt::Order::kRelaxed)]])
symm_explored_mutant(05 wait_for_equal barrier/2x1 "no thread can go on"
  FILE labs/05_device_prims/signal.hpp
  OLD [[(seen - expected) >= 0]] NEW [[(seen - expected) == 0]])
symm_explored_mutant(05 no_wrap signal/wrap "the number is"
  FILE labs/05_device_prims/signal.hpp
  OLD [[static_cast<std::int32_t>(seen - expected) >= 0]] NEW [[seen >= expected]])
symm_explored_mutant(05 one_flag packet "the packet brings"
  FILE labs/05_device_prims/ll_packet.hpp
  OLD [[ && flag1 == flag]] NEW "")
symm_explored_mutant(05 no_sync_before barrier/2x2 "data race on r[01].box"
  FILE labs/05_device_prims/barrier.hpp
  OLD [[block_.sync();]] NEW "")
symm_explored_mutant(05 no_sync_after barrier/2x2 "data race on r[01].box"
  FILE labs/05_device_prims/barrier.hpp
  OLD [[all_.sync(arrived)]] NEW [[arrived]])
symm_explored_mutant(05 epoch_not_stored barrier/2x2/2 "reads"
  FILE labs/05_device_prims/barrier.hpp
  OLD [[view_.local()->epoch[block_.group_index()] = epoch_;]] NEW "")

# The others go on without the thread that gave up.
symm_explored_mutant(05 abort_leaves_alone barrier/3x2 "reads"
  FILE labs/05_device_prims/abort_barrier.hpp
  OLD [[aborted_ = block_.sync_or(aborted_ || !all_is_well);
        return !aborted_;]]
  NEW [[block_.sync();
        return all_is_well;]])

# The answer of a round is forgotten in the next.
symm_explored_mutant(05 abort_does_not_stay abort_barrier "the block has left"
  FILE labs/05_device_prims/abort_barrier.hpp
  OLD [[sync_or(aborted_ || !all_is_well)]] NEW [[sync_or(!all_is_well)]])

# Items are overwritten that others still read.
symm_explored_mutant(05 work_no_sync_before_load work_fifo/2 "data race on r1.shared"
  FILE labs/05_device_prims/shared_work/work_batch.hpp
  OLD [[block.sync();
                load(block]]
  NEW [[load(block]])

# Items are read, and released, before they are there.
symm_explored_mutant(05 work_no_sync_after_load work_fifo/2 "item . instead of"
  FILE labs/05_device_prims/shared_work/work_batch.hpp
  OLD [[load(block, shared, from);
                block.sync();]]
  NEW [[load(block, shared, from);]])

# The host overwrites what is not loaded yet.
symm_explored_mutant(05 work_consumed_before_load work_fifo/1 "data race on r0.ring"
  FILE labs/05_device_prims/shared_work/work_batch.hpp
  OLD [[release(block, from + items)]] NEW [[release(block, count)]])

# The loads race with the host's next items.
symm_explored_mutant(05 work_consumed_relaxed work_fifo/1 "data race on r0.ring"
  FILE labs/05_device_prims/shared_work/work_batch.hpp
  OLD [[simt::store(&consumed[c], first + items, simt::Order::kRelease)]]
  NEW [[simt::store(&consumed[c], first + items, simt::Order::kRelaxed)]])

# A thread reads what another is still copying.
symm_explored_mutant(05 load_no_sync load_args/96 "word . is 15408456814510331349"
  FILE labs/05_device_prims/shared_work/load_parallel.hpp
  OLD [[block.sync();]] NEW "")

# The part of a load beyond the ring's end is left out.
symm_explored_mutant(05 work_no_second_part work_fifo/2/end "item 15408456814510331349 instead of"
  FILE labs/05_device_prims/shared_work/work_batch.hpp
  OLD [[load_parallel(group, shared + to_end, ring, items - to_end);]] NEW "")
# The host waits for entries that nobody will read.
symm_explored_mutant(05 work_leaves_unread work_fifo/2/leave "no thread can go on"
  FILE labs/05_device_prims/shared_work/work_batch.hpp
  OLD [[release(block, count);]] NEW "")
# A block of two warps has no third that would copy the items.
symm_explored_mutant(05 load_no_items load_args/64 "word . is 15408456814510331349"
  FILE labs/05_device_prims/shared_work/load_parallel.hpp
  OLD [[block.size() <= 2 * kWarp]] NEW [[block.size() < 2 * kWarp]])
symm_explored_mutant(05 signals_after_giving_up barrier/2x2/2 "has given up, and stores"
  FILE labs/05_device_prims/barrier.hpp
  OLD [[if (p != view_.rank && !waiter_.gave_up()) {]] NEW [[if (p != view_.rank) {]])

# The barrier by the switch.
set(symm_by_switch labs/05_device_prims/multicast_barrier.hpp)
symm_explored_mutant(05 multicast_fence_behind multicast_barrier/2x1
  "no fence_alias.. between .*arrived"
  FILE ${symm_by_switch}
  OLD [[            simt::fence_alias();  // and the other way round
]] NEW "")
symm_explored_mutant(05 multicast_added_relaxed multicast_barrier/2x1 "data race on r[01].box"
  FILE common/simt/multimem.hpp
  OLD [[value, Order::kRelease)]] NEW [[value, Order::kRelaxed)]])
symm_explored_mutant(05 multicast_polled_relaxed multicast_barrier/2x1 "data race on r[01].box"
  FILE ${symm_by_switch}
  OLD [[wait_signal(]] NEW [[wait_signal<simt::Order::kRelaxed>(]])
symm_explored_mutant(05 multicast_waits_for_equal multicast_barrier/2x1 "no thread can go on"
  FILE labs/05_device_prims/signal.hpp
  OLD [[seen - expected) >= 0]] NEW [[seen - expected) == 0]])
symm_explored_mutant(05 multicast_no_sync_before multicast_barrier/2x2 "data race on r[01].box"
  FILE ${symm_by_switch}
  OLD [[block_.sync_or(waiter_.gave_up())]] NEW [[waiter_.gave_up()]])
symm_explored_mutant(05 multicast_no_sync_after multicast_barrier/2x2 "after barrier 1 rank 0 reads"
  FILE ${symm_by_switch}
  OLD [[together_.sync(arrived)]] NEW [[arrived]])
symm_explored_mutant(05 multicast_not_stored multicast_barrier/2x2/2 "reads"
  FILE ${symm_by_switch}
  OLD [[view_.own->passed[block_.group_index()] = passed_;]] NEW "")
symm_explored_mutant(05 multicast_adds_after_giving_up multicast_barrier/2x2/2
  "has given up, and stores"
  FILE ${symm_by_switch}
  OLD [[block_.sync_or(waiter_.gave_up())]] NEW [[block_.sync_or(false)]])
