// Both collectives on 1 to 8 ranks, every result checked; and calls that are refused.

#include "your_own_test.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <symm/nodes.hpp>  // not used: it is installed, too

int main(int argc, char** argv) {
    using namespace symm::collectives;
    try {
        const int most = argc > 1 ? std::atoi(argv[1]) : 8;
        for (int ranks = 1; ranks <= most; ++ranks) {
            test_all_to_all(ranks);
            test_rms_norm(ranks);
            fmt::print("{} ranks: right\n", ranks);
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
