#pragma once
/// \file
/// A failing execution as a story: its steps in order, without those that do not matter.

#include <string>
#include <vector>

#include "common/explore/explore.hpp"

namespace symm::explore {

/// The numbers of the steps that matter: those that the failure is about, and backwards from each
/// what its thread had read from others before, where that was stored, and so on.
std::vector<std::size_t> steps_that_matter(const Report& report);

/// One line for each step that matters, the last `most` of them, and the failure. `all`: all steps,
/// with one line for a loop of plain accesses of one memory.
std::string story(const Report& report, bool all = false, std::size_t most = 24);

/// The report as a JSON object in one line, with every step of a failing execution; `matters` says
/// which of them the story has.
std::string as_json(const Report& report, const std::string& protocol, bool may_give_up);

}  // namespace symm::explore
