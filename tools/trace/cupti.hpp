#pragma once
/// \file
/// CUPTI, NVIDIA's library for profilers, loaded at run time: nothing of it is needed to build.

#include <fmt/core.h>

#include <stdexcept>

namespace symm::trace {

/// A function of CUPTI. Throws std::runtime_error if the library is not found.
void* cupti_function(const char* name);

/// Calls a function of CUPTI. Throws std::runtime_error if it is not found, or fails.
template <class... Arguments>
void call_cupti(const char* name, Arguments... arguments) {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(cupti_function(name));
    if (const int result = function(arguments...); result != 0) {
        throw std::runtime_error(
            fmt::format("{} failed: CUPTI error {}. Is another profiler running?", name, result));
    }
}

}  // namespace symm::trace
