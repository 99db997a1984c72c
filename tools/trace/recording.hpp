#pragma once
/// \file
/// Shared by the two ways to see a call (forwarding.cpp, cupti.cpp).

#include "tools/trace/arguments.hpp"
#include "tools/trace/driver_calls.hpp"

namespace symm::trace {

/// The recording of one thread.
struct Recording {
    std::vector<DriverCall> calls;
    Names names;
};

/// The calling thread's recording; null while it does not record.
Recording*& this_thread();

/// Adds a call to the calling thread's recording, if there is one.
void add(std::string_view name, const void* const* slots, CUresult result,
         const char* kernel = nullptr);

/// Puts a table that records in the place of the emulated driver's.
void forward_through_trace();

/// Subscribes to CUPTI's callbacks. Throws std::runtime_error if it is not found or refuses, or if
/// this build found no headers of it.
void subscribe_to_cupti();

}  // namespace symm::trace
