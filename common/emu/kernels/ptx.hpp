#pragma once
/// \file
/// The names of the kernels in a PTX text. Emulated GPUs run no PTX, so nothing else of it is read.
///
/// Source: PTX ISA, "Kernel and Function Directives: .entry" and "PTX Module Directives".

#include <string>
#include <string_view>
#include <vector>

namespace symm::emu {

/// The name of each `.entry`. Refuses with
/// - CUDA_ERROR_INVALID_IMAGE if the first directive is not `.version`: this is no PTX,
/// - CUDA_ERROR_INVALID_PTX if `.target` does not follow, or an `.entry` has no name.
std::vector<std::string> entries_of(std::string_view ptx);

}  // namespace symm::emu
