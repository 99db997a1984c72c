#pragma once
/// \file
/// CUPTI, NVIDIA's library for profilers, loaded at run time: nothing of it is needed to build.

#include <string_view>

namespace symm::profile {

/// A function of CUPTI. Throws std::runtime_error where the library is not found.
void* cupti_function(const char* name);

/// Throws std::runtime_error unless `result` is 0.
void check_cupti(int result, std::string_view call);

/// Calls a function of CUPTI. Throws std::runtime_error where it is not found, or fails.
template <class... Arguments>
void call_cupti(const char* name, Arguments... arguments) {
    check_cupti(reinterpret_cast<int (*)(Arguments...)>(cupti_function(name))(arguments...), name);
}

}  // namespace symm::profile
