#pragma once
/// \file
/// The program that explores a lab's protocols: a table, or a counterexample.

#include <functional>
#include <string>
#include <vector>

#include "tools/explore/explore.hpp"

namespace symm::explore {

struct Protocol {
    std::string name;  ///< `barrier`, `barrier/3x1`: the protocol, and the size.
    std::function<void(Scene&)> setup;
    bool may_give_up = true;  ///< Explored a second time, where each wait may give up.
    /// Options::sample of a search without --all.
    std::uint64_t sample = 0;
};

int explore_main(int argc, char** argv, const std::vector<Protocol>& protocols);

}  // namespace symm::explore
