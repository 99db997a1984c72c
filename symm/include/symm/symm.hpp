#pragma once
/// \file
/// The library's public header. A program makes its ranks (run_ranks(), or a Bootstrap of its own),
/// a Communicator for each, and calls that. symm/examples is such a program.

#include "common/cuda/copy.hpp"
#include "common/cuda/stream.hpp"
#include "common/ranks/ranks.hpp"
#include "common/sys/refuse_unless.hpp"
#include "labs/01_vmm_alloc/mem_alloc.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"
#include "labs/06_allreduce/communicator/own_collective.hpp"
