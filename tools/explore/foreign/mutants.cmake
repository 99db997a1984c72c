# The mutants of the protocols of other projects (cmake/Mutants.cmake).

set(deep_ep tools/explore/foreign/deep_ep.cuh)
set(fence_after_sync [[        __syncthreads();
        memory_fence();
    }]])
set(sync_after_fence [[        memory_fence();
        __syncthreads();
    }]])
set(fence_after_poll [[        memory_fence();
    }
    __syncthreads();]])
set(no_fence_after_poll [[    }
    __syncthreads();]])

# As DeepEP has it: the fence comes before the block's sync, and none after the poll.
symm_explored_mutant(deep_ep as_written deep_ep/2x2 "data race on r[01].words"
  FILE ${deep_ep} OLD "${fence_after_sync}" NEW "${sync_after_fence}"
  OLD "${fence_after_poll}" NEW "${no_fence_after_poll}")
# Each alone. The first orders a thread's own words, but not the zeros of its block.
symm_explored_mutant(deep_ep fence_before_sync deep_ep/2x2 "data race on r[01].words"
  FILE ${deep_ep} OLD "${fence_after_sync}" NEW "${sync_after_fence}")
symm_explored_mutant(deep_ep no_fence_after deep_ep/2x2 "data race on r[01].words"
  FILE ${deep_ep} OLD "${fence_after_poll}" NEW "${no_fence_after_poll}")
symm_explored_mutant(deep_ep no_fence_before deep_ep/2x2 "data race on r[01].words"
  FILE ${deep_ep} OLD "${fence_after_sync}" NEW "        __syncthreads();\n    }")
# A rank clears its queue after a peer has sent.
symm_explored_mutant(deep_ep queue_not_announced deep_ep/2x2 "data race on r[01].words"
  FILE ${deep_ep}
  OLD [[    barrier_block(ranks);  // the queues of all ranks are empty
]] NEW "")
# A fast rank's counts come while a peer still receives words.
symm_explored_mutant(deep_ep no_first_barrier deep_ep/2x2 "data race on r[01].words"
  FILE ${deep_ep}
  OLD [[    barrier_block<true>(ranks);  // all ranks have left the kernel before
]] NEW "")

set(lamport tools/explore/foreign/lamport.cuh)
set(counter [[Counter(state.counter)]])
set(release "${counter}.fetch_add(1, cuda::memory_order_release)")
set(acquire "${counter}.load(cuda::memory_order_acquire)")
set(no_release "${counter}.fetch_add(1, cuda::memory_order_relaxed)")
set(no_acquire "${counter}.load(cuda::memory_order_relaxed)")
set(pushed [[store(&ranks.buffers[r]->words[flag][(ranks.rank * packs + i) * kWords + w], word)]])
set(plain [[ranks.buffers[r]->words[flag][(ranks.rank * packs + i) * kWords + w] = word]])
set(cleared [[store(&mine.words[(flag + kBuffers - 1) % kBuffers][i * kWords + w], kNotCome)]])
set(plain_cleared [[mine.words[(flag + kBuffers - 1) % kBuffers][i * kWords + w] = kNotCome]])

# As TensorRT-LLM has it: plain stores of data, and a counter that orders nothing.
symm_explored_mutant(lamport as_written lamport/2x1 "data race on r[01].buffer0"
  FILE ${lamport} OLD "${pushed}" NEW "${plain}" OLD "${cleared}" NEW "${plain_cleared}"
  OLD "${release}" NEW "${no_release}" OLD "${acquire}" NEW "${no_acquire}")
# Each alone.
symm_explored_mutant(lamport plain_data lamport/2x1 "data race on r[01].buffer0"
  FILE ${lamport} OLD "${pushed}" NEW "${plain}")
symm_explored_mutant(lamport plain_clear lamport/2x1 "data race on r[01].buffer0"
  FILE ${lamport} OLD "${cleared}" NEW "${plain_cleared}")
symm_explored_mutant(lamport relaxed_counter lamport/2x1x2 "data race on r[01].flag"
  FILE ${lamport} OLD "${release}" NEW "${no_release}" OLD "${acquire}" NEW "${no_acquire}")
symm_explored_mutant(lamport no_release lamport/2x1x2 "data race on r[01].flag"
  FILE ${lamport} OLD "${release}" NEW "${no_release}")
symm_explored_mutant(lamport no_acquire lamport/2x1x2 "data race on r[01].flag"
  FILE ${lamport} OLD "${acquire}" NEW "${no_acquire}")
# A fast peer pushes into a buffer whose words have not been added up.
symm_explored_mutant(lamport two_buffers lamport/2x1 "is wrong|no thread can go on"
  FILE ${lamport} OLD [[kBuffers = 3]] NEW [[kBuffers = 2]])
symm_explored_mutant(lamport no_clear lamport/2x1 "a sum of call 3 is wrong"
  FILE ${lamport} OLD "i < dirty;" NEW "i < 0 * dirty;")
# The size of the call that clears is not the size of the one before.
symm_explored_mutant(lamport clears_own_size lamport/2x1/sizes "is wrong"
  FILE ${lamport} OLD "i < dirty;" NEW "i < ranks.count * packs;")
symm_explored_mutant(lamport sends_zero lamport/2x1/zero "no thread can go on"
  FILE ${lamport} OLD [[has_come(given) ? given : 0]] NEW [[given]])
# A pack's second word may come after its first.
symm_explored_mutant(lamport one_word lamport/2x1 "is wrong"
  FILE ${lamport} OLD [[all_have_come &= has_come(words[r][w])]]
  NEW [[all_have_come &= w > 0 || has_come(words[r][w])]])
# A kernel that does not wait for the one before.
symm_explored_mutant(lamport no_wait lamport/2x1x2/early "data race on r[01].(flag|in0)"
  FILE ${lamport} OLD [[    cudaGridDependencySynchronize();
]] NEW "")
