#pragma once
/// \file
/// For calls over several machines: a HierarchicalCommunicator, on a communicator of each machine's
/// ranks, an Exchange and a Rail, the program's way between machines. symm/nodes/README.md explains
/// them.

#include "symm/nodes/exchange.hpp"
#include "symm/nodes/hierarchical_communicator.hpp"
