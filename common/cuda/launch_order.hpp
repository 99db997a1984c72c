#pragma once
/// \file
/// When a kernel may start.

namespace symm {

/// When a kernel starts in its stream. A dependent one starts as soon as the kernel before it
/// allows (ThreadBlock::launch_dependents()), so it calls ThreadBlock::wait_for_predecessor()
/// before its first access. Needs a GPU of compute capability 9.0.
enum class LaunchOrder {
    kAfter,  ///< When the work before it has ended.
    kDependent,
};

}  // namespace symm
