#pragma once
/// \file
/// A counterexample: the steps of a failing execution in order, without those that do not matter.

#include <cstddef>
#include <string>
#include <vector>

#include "tools/explore/explore.hpp"

namespace symm::explore {

/// One line for each step that matters, and the failure. These are the steps that the failure is
/// about, and backwards from each what its thread had read before, where that was stored, and so
/// on; of more than `most` those with the fewest links to the failure, and all that their lines
/// cite.
std::vector<std::string> counterexample(const Report& report, std::size_t most = 8);

/// The report as a JSON object in one line (docs/EXPLORE.md has its form), with a counterexample
/// of `most` steps.
std::string as_json(const Report& report, const std::string& protocol, bool may_give_up,
                    std::size_t most = 8);

}  // namespace symm::explore
