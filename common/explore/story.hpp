#pragma once
/// \file
/// A failing execution as a story: its steps in order, without those that do not matter.

#include <cstddef>
#include <string>

#include "common/explore/explore.hpp"

namespace symm::explore {

/// One line for each step that matters, the last `most` of them, and the failure. These are the
/// steps that the failure is about, and backwards from each what its thread had read from others
/// before, where that was stored, and so on. `all`: all steps, with one line for a loop of plain
/// accesses of one memory.
std::string story(const Report& report, bool all = false, std::size_t most = 24);

/// The report as a JSON object in one line, with every step of a failing execution; `matters` says
/// which of them the story has.
std::string as_json(const Report& report, const std::string& protocol, bool may_give_up);

}  // namespace symm::explore
