#pragma once
/// \file
/// The parts of your_own_test. Each throws std::runtime_error for a wrong result.

#include <symm/symm.hpp>

namespace symm::collectives {

void test_all_to_all(int ranks);
void test_rms_norm(int ranks);
/// Collective. Rows of `hidden` floats, alone and among others, by each way.
void check_batch_invariance(symm::Rank& rank, unsigned hidden);

}  // namespace symm::collectives
