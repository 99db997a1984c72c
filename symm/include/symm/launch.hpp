#pragma once
/// \file
/// For the .cu file that launches a kernel of your own: launch(), resident_blocks(), and the choice
/// of a kernel for a type and a number of ranks (launch_for). CMake's symm_kernels(target) compiles
/// it: with nvcc, or as C++ if the library knows emulated GPUs only.

#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"
#include "labs/06_allreduce/algorithms/dispatch.hpp"
