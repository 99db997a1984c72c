#pragma once
/// \file
/// The names of the kernels in a PTX text. Emulated GPUs run no PTX, so nothing else of it is read.
///
/// Source: PTX ISA, "Kernel and Function Directives: .entry" and "PTX Module Directives".

#include <cuda.h>

#include <string>
#include <string_view>
#include <vector>

namespace symm::emu {

/// Puts the name of each `.entry` in `names`. Answers
/// - CUDA_ERROR_INVALID_IMAGE where the first directive is not `.version`: this is no PTX,
/// - CUDA_ERROR_INVALID_PTX where `.target` does not follow, or an `.entry` has no name.
CUresult entries_of(std::string_view ptx, std::vector<std::string>& names);

}  // namespace symm::emu
