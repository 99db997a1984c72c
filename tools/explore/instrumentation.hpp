#pragma once
/// \file
/// Accesses of the scene's code that are announced (instrumentation.cpp), or made by functions of
/// the C library (library.cpp).

#include <cstddef>

/// Where in the code the function was called.
#define PLACE __builtin_return_address(0)

namespace symm::explore {

/// A plain access comes next. Nothing in the explorer itself.
void plain(const void* address, std::size_t size, bool store, void* place,
           std::size_t alignment = 1);

}  // namespace symm::explore
