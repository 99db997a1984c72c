#pragma once
/// \file
/// The explorer (docs/EXPLORE.md) ends waits itself, and knows no host but only GPUs. Its build
/// defines SYMM_EXPLORE; in all others nothing calls these functions, and they do not exist.

#include <cstdint>
#include <functional>

namespace symm::simt {

#ifdef SYMM_EXPLORE
inline constexpr bool kExplored = true;
#else
inline constexpr bool kExplored = false;
#endif

/// How a wait ended.
enum class Awaited {
    kTrue,        ///< The poll was true.
    kTimeIsOver,  ///< This thread gives up.
    kAnother,     ///< Another thread of its rank has given up, and this one has seen it.
};

/// Returns once `poll()` was true, with any values that its loads may return. Unless `gave_up`, the
/// rank's flag for that, is null: where waits may give up, also at any time before.
Awaited await(const std::function<bool()>& poll, const std::uint32_t* gave_up);

/// From here on, until it is called with false, the calling thread's accesses are those of a
/// multicast address (multimem.hpp).
void through_multicast(bool begins);
/// fence_alias() (multimem.hpp).
void explored_fence_alias();

/// The last two loads of the calling thread acquire, both of them after both: the halves of a pack.
void acquire_both();

}  // namespace symm::simt
