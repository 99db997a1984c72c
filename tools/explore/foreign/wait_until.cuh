#pragma once
// A wait as a loop that polls, as plain kernels have it.

/// The explorer also recognizes loops that poll, but needs many more executions for them.
template <class Poll>
__device__ void wait_until(const Poll& poll) {
#ifdef SYMM_EXPLORE
    symm::simt::await(poll, nullptr);
#else
    while (!poll()) {
    }
#endif
}
