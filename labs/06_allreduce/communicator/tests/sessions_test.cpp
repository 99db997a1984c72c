// 06_allreduce as launchers start it: each rank in its own session. The kernel gives every session
// an equal share of the processors, so a waiting rank that only yields would starve the others.

#include <gtest/gtest.h>

#include <string>

#include "common/tests/run_program.hpp"
#include "common/tests/running.hpp"

namespace symm {
namespace {

TEST(Sessions, OfRanksDoNotStarveEachOther) {
    const std::string ranks =
        "for rank in 0 1 2 3; do RANK=$rank WORLD_SIZE=4 setsid -w " + binary_directory() +
        "/06_allreduce --driver emulated --count 1009 & ranks=\"$ranks $!\"; done; "
        "for rank in $ranks; do wait $rank || exit 1; done";
    for (int round = 0; round < 5; ++round) {
        testing::Running run({"/bin/sh", "-c", ranks}, {"SYMM_LAUNCHER="});
        ASSERT_TRUE(run.end().success()) << "round " << round << run.output() << run.errors();
    }
}

}  // namespace
}  // namespace symm
