// What the environment says about this process's rank.

#include "common/ranks/launcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The environment for a scope: only these of all variables that matter here.
class Environment {
public:
    explicit Environment(const std::map<std::string, std::string>& variables) {
        for (const char* name : {"SYMM_RANK",
                                 "SYMM_RANKS",
                                 "SYMM_RUN",
                                 "SYMM_PARENT",
                                 "SYMM_RENDEZVOUS",
                                 "SYMM_LAUNCHER",
                                 "RANK",
                                 "WORLD_SIZE",
                                 "LOCAL_WORLD_SIZE",
                                 "MASTER_PORT",
                                 "OMPI_COMM_WORLD_RANK",
                                 "OMPI_COMM_WORLD_SIZE",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE",
                                 "PMIX_NAMESPACE",
                                 "PMI_RANK",
                                 "PMI_SIZE",
                                 "MPI_LOCALNRANKS",
                                 "SLURM_PROCID",
                                 "SLURM_STEP_NUM_TASKS",
                                 "SLURM_STEP_NUM_NODES",
                                 "SLURM_JOB_ID"}) {
            const char* value = std::getenv(name);
            before_[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
            ::unsetenv(name);
        }
        for (const auto& [name, value] : variables) {
            ::setenv(name.c_str(), value.c_str(), 1);
        }
    }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;
    ~Environment() {
        for (const auto& [name, value] : before_) {
            value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
        }
    }

private:
    std::map<std::string, std::optional<std::string>> before_;
};

TEST(Launcher, IsNoneInAnEmptyEnvironment) {
    const Environment environment(std::map<std::string, std::string>{});
    EXPECT_FALSE(placement_from_environment());
}

TEST(Launcher, IsKnownByItsVariables) {
    const std::tuple<const char*, const char*, const char*> launchers[] = {
        {"torchrun", "RANK", "WORLD_SIZE"},
        {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"MPICH", "PMI_RANK", "PMI_SIZE"},
        {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    for (const auto& [name, rank, size] : launchers) {
        const Environment environment({{rank, "3"}, {size, "5"}});
        const auto place = placement_from_environment();
        ASSERT_TRUE(place);
        EXPECT_EQ(place->launcher, name);
        EXPECT_EQ(place->rank, 3);
        EXPECT_EQ(place->size, 5);
        EXPECT_FALSE(place->is_copy());
        EXPECT_FALSE(place->directory.empty());
    }
}

TEST(Launcher, MeetsWhereItIsTold) {
    const Environment environment(
        {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"SYMM_RENDEZVOUS", "/some/where"}});
    EXPECT_EQ(placement_from_environment()->directory, "/some/where");
}

TEST(Launcher, RunsOfOneLauncherMeetApart) {
    std::filesystem::path first;
    {
        const Environment environment(
            {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "29500"}});
        first = placement_from_environment()->directory;
    }
    const Environment environment(
        {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "../29501"}});
    EXPECT_NE(placement_from_environment()->directory, first);
    EXPECT_EQ(placement_from_environment()->directory.parent_path(), first.parent_path());
}

TEST(Launcher, ACopyComesBeforeAnyLauncher) {
    const Environment environment({{"SYMM_RANK", "1"},
                                   {"SYMM_RANKS", "2"},
                                   {"SYMM_RUN", "18446744073709551615"},
                                   {"SYMM_PARENT", "77"},
                                   {"SYMM_RENDEZVOUS", "/d"},
                                   {"RANK", "5"},
                                   {"WORLD_SIZE", "6"}});
    const auto place = placement_from_environment();
    ASSERT_TRUE(place);
    EXPECT_EQ(place->rank, 1);
    EXPECT_EQ(place->run, ~std::uint64_t{0});
    EXPECT_EQ(place->parent, 77);
    EXPECT_TRUE(place->is_copy());
}

TEST(Launcher, CanBeIgnored) {
    const Environment environment({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"SYMM_LAUNCHER", "none"}});
    EXPECT_FALSE(placement_from_environment());
}

TEST(Launcher, HalfAPairIsNone) {
    const Environment environment(std::map<std::string, std::string>{{"RANK", "captain"}});
    EXPECT_FALSE(placement_from_environment());
}

TEST(Launcher, AnEmptyVariableCountsAsNotSet) {
    for (const auto& [rank, size] : {std::pair("", "5"), std::pair("0", ""), std::pair("", "")}) {
        const Environment environment(
            {{"RANK", rank}, {"WORLD_SIZE", size}, {"SYMM_RANK", ""}, {"SYMM_LAUNCHER", ""}});
        EXPECT_FALSE(placement_from_environment()) << rank << " of " << size;
    }
    const Environment environment({{"RANK", "0"},
                                   {"WORLD_SIZE", "2"},
                                   {"LOCAL_WORLD_SIZE", ""},
                                   {"MASTER_PORT", ""},
                                   {"SYMM_RENDEZVOUS", ""}});
    ASSERT_TRUE(placement_from_environment());
    EXPECT_THAT(placement_from_environment()->directory, HasSubstr("symm-"));
}

TEST(Launcher, NumbersThatMakeNoSenseAreNamed) {
    const std::pair<const char*, const char*> pairs[] = {{"5", "5"},  {"-1", "5"},   {"x", "5"},
                                                         {"1 ", "5"}, {"0x1", "5"},  {"0", "0"},
                                                         {"0", "65"}, {"0", "many"}, {"1e3", "5"}};
    for (const auto& [rank, size] : pairs) {
        const Environment environment({{"RANK", rank}, {"WORLD_SIZE", size}});
        EXPECT_THAT([] { placement_from_environment(); },
                    ::testing::ThrowsMessage<UsageError>(HasSubstr("SYMM_LAUNCHER=none")))
            << rank << " of " << size;
    }
}

TEST(Launcher, SeveralHostsAreRefused) {
    {
        const Environment environment(
            {{"RANK", "0"}, {"WORLD_SIZE", "16"}, {"LOCAL_WORLD_SIZE", "8"}});
        EXPECT_THAT(
            [] { placement_from_environment(); },
            ::testing::ThrowsMessage<UsageError>(AllOf(HasSubstr("16"), HasSubstr("one host"))));
    }
    const Environment environment(
        {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_NUM_NODES", "2"}});
    EXPECT_THROW(placement_from_environment(), UsageError);
}

TEST(Launcher, ABatchScriptOfSlurmIsNoRank) {
    const Environment environment({{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}});
    EXPECT_FALSE(placement_from_environment());
}

}  // namespace
}  // namespace symm
