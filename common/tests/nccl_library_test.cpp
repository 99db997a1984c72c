// Where NCCL is searched for. A fake library (fake_nccl.cpp) is in those places.

#include "common/nccl/nccl_library.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "common/tests/temporary_directory.hpp"
#include "common/tests/variable_in_force.hpp"

namespace symm {
namespace {

namespace fs = std::filesystem;

[[maybe_unused]] const bool without_multicast = (turn_multicast_off(), true);

/// A Python prefix with the package nvidia-nccl-cu13. No environment variable leads to another one.
class NcclOfPython : public ::testing::Test {
protected:
    void SetUp() override {
        fs::create_directories(library().parent_path());
        fs::copy_file(FAKE_NCCL, library());
    }

    fs::path prefix() const { return directory_.path() / "prefix"; }
    fs::path library() const {
        return prefix() / "lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2";
    }
    void expect_found() const {
        const std::string found = nccl_of_python();
        ASSERT_FALSE(found.empty());
        EXPECT_TRUE(fs::equivalent(found, library())) << found;
    }

private:
    TemporaryDirectory directory_;
    VariableInForce virtual_env_{"VIRTUAL_ENV", std::nullopt};
    VariableInForce conda_{"CONDA_PREFIX", std::nullopt};
    VariableInForce home_{"HOME", "/nonexistent"};
    VariableInForce path_{"PATH", "/nonexistent"};
};

TEST_F(NcclOfPython, IsFoundInAnActiveEnvironment) {
    const VariableInForce active("VIRTUAL_ENV", prefix());
    expect_found();
}

TEST_F(NcclOfPython, IsFoundBesideThePythonOnThePathOrThatALinkThereNames) {
    const fs::path bin = prefix() / "bin";
    const fs::path links = prefix() / "../links";
    fs::create_directories(bin);
    fs::create_directories(links);
    std::ofstream(bin / "python3") << "#!/bin/sh\n";
    fs::permissions(bin / "python3", fs::perms::owner_all);
    fs::create_symlink(bin / "python3", links / "python3");
    for (const fs::path& folder : {bin, links}) {
        const VariableInForce path("PATH", "/nonexistent:" + folder.string());
        expect_found();
    }
}

TEST_F(NcclOfPython, IsFoundWhereAUserInstalledIt) {
    fs::create_directories(prefix() / "home");
    fs::create_directory_symlink(prefix(), prefix() / "home/.local");
    const VariableInForce home("HOME", prefix() / "home");
    expect_found();
}

TEST(NcclLibrary, NeverUsesMulticast) {
    const VariableInForce chosen("SYMM_NCCL_LIB", FAKE_NCCL);
    const VariableInForce asked("NCCL_NVLS_ENABLE", "1");
    std::string why_not;
    EXPECT_EQ(NcclLibrary::load(why_not), nullptr);
    EXPECT_EQ(why_not, "it would use NVLink multicast: call turn_multicast_off() first");
    turn_multicast_off();
    EXPECT_STREQ(std::getenv("NCCL_NVLS_ENABLE"), "0");
    EXPECT_NE(NcclLibrary::load(why_not), nullptr) << why_not;
}

TEST(NcclLibrary, IsTheOneThatAVariableNames) {
    const VariableInForce chosen("SYMM_NCCL_LIB", FAKE_NCCL);
    std::string why_not;
    const auto library = NcclLibrary::load(why_not);
    ASSERT_NE(library, nullptr) << why_not;
    EXPECT_EQ(library->version(), "99.1.2");
}

TEST(NcclLibrary, IsNoOtherThanAVariableNames) {
    const VariableInForce chosen("SYMM_NCCL_LIB", "/nonexistent/libnccl.so");
    std::string why_not;
    EXPECT_EQ(NcclLibrary::load(why_not), nullptr);
    EXPECT_EQ(why_not.find("SYMM_NCCL_LIB: /nonexistent/libnccl.so: cannot open"), 0U) << why_not;
}

}  // namespace
}  // namespace symm
