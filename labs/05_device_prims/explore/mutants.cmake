# The primitives with one order, sync or check less (cmake/Mutants.cmake).
symm_explored_mutant(05 signal_relaxed signal "data race on number"
  FILE labs/05_device_prims/signal.hpp
  OLD [[simt::store(flag, value, kOrder)]] NEW [[simt::store(flag, value, simt::Order::kRelaxed)]])
symm_explored_mutant(05 wait_relaxed signal "data race on number"
  FILE labs/05_device_prims/signal.hpp
  OLD [[simt::load(flag, kOrder)]] NEW [[simt::load(flag, simt::Order::kRelaxed)]])
symm_explored_mutant(05 wait_for_equal barrier/2x1 "nobody can go on"
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
