#pragma once
/// \file
/// Where a kernel meets the explorer: its waits (docs/EXPLORE.md). Compiled in with SYMM_EXPLORE.

#include <cstdint>

namespace symm::explore {

/// How a wait ended.
enum class Awaited {
    kTrue,        ///< The poll was true.
    kTimeIsOver,  ///< This thread gives up.
    kAnother,     ///< Another thread of its rank has given up, and this one has seen it.
};

/// Returns once `poll(context)` was true, with any values that its loads may return; where waits
/// may give up, also at any time before. `gave_up` is the rank's flag for that.
Awaited await(bool (*poll)(void*), void* context, const std::uint32_t* gave_up);

/// The same for a callable.
template <class Poll>
Awaited await(const Poll& poll, const std::uint32_t* gave_up) {
    return await([](void* context) { return (*static_cast<const Poll*>(context))(); },
                 const_cast<Poll*>(&poll), gave_up);
}

/// The last two loads of the calling thread acquire, both of them after both: the halves of a pack.
void acquire_both();

}  // namespace symm::explore
