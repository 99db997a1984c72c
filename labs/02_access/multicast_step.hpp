#pragma once
/// \file
/// One address for memory of all devices: what one device stores there, all have, and what it loads
/// is a sum. MULTICAST.md has the lesson.

#include "labs/02_access/access_steps.hpp"

namespace symm {

/// Makes a multicast object of all devices, stores to all from each of them, and adds up what all
/// have. Where there is no multicast, or it is not allowed, the report says so. Throws CudaError.
StepReport show_multicast(const StepContext& context);

}  // namespace symm
