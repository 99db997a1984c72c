#pragma once
/// \file
/// The deadline of waits that are to succeed.

#include "common/sys/deadline.hpp"

namespace symm::testing {

/// Long enough for any machine; a test that reaches it has failed.
inline Deadline patient() {
    return Deadline::after(std::chrono::seconds(60));
}

}  // namespace symm::testing
