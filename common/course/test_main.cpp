// main() of an exercise's tests: GoogleTest's own, which also tells `./lab check` each result.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "common/course/results.hpp"

namespace {

std::string name_of(const ::testing::TestInfo& test) {
    return std::string(test.test_suite_name()) + "." + test.name();
}

class Tell : public ::testing::EmptyTestEventListener {
    void OnTestProgramStart(const ::testing::UnitTest& all) override {
        for (int s = 0; s < all.total_test_suite_count(); ++s) {
            const ::testing::TestSuite& suite = *all.GetTestSuite(s);
            for (int t = 0; t < suite.total_test_count(); ++t) {
                if (suite.GetTestInfo(t)->should_run()) {
                    symm::course::announce(name_of(*suite.GetTestInfo(t)));
                }
            }
        }
    }
    void OnTestEnd(const ::testing::TestInfo& test) override {
        symm::course::tell(name_of(test), test.result()->Passed());
    }
};

}  // namespace

int main(int argc, char** argv) {
    ::unsetenv("GTEST_TOTAL_SHARDS");  // of the learner's shell, or set by an answer's constructor:
    ::unsetenv("GTEST_SHARD_INDEX");   // a part of the tests would pass for all
    ::testing::InitGoogleTest(&argc, argv);
    ::testing::UnitTest::GetInstance()->listeners().Append(new Tell);  // which deletes it
    return RUN_ALL_TESTS();
}
