// Files that are there whole or not at all.

#include "common/sys/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <sstream>

#include "common/sys/descriptor.hpp"
#include "common/sys/directory.hpp"

namespace symm {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
protected:
    static std::string text_of(const fs::path& path) {
        std::stringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }
    std::size_t files() const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), {}));
    }
    PrivateDirectory folder_{"symm-output-test"};
    fs::path path_ = folder_.path() / "file.json";
};

TEST_F(OutputFileTest, IsThereOnceItIsWritten) {
    OutputFile file(path_);
    EXPECT_FALSE(fs::exists(path_));
    file.write("all");
    EXPECT_EQ(text_of(path_), "all");
    EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, KeepsWhatWasThereUntilThen) {
    std::ofstream(path_) << "before";
    ::chmod(path_.c_str(), 0640);
    { const OutputFile never_written(path_); }
    EXPECT_EQ(text_of(path_), "before");
    OutputFile file(path_);
    EXPECT_EQ(text_of(path_), "before");
    file.write("after");
    EXPECT_EQ(text_of(path_), "after");
    EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0640)) << "and who may read it";
    EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, LeavesNothingWhereNothingWasWritten) {
    { const OutputFile never_written(path_); }
    EXPECT_EQ(files(), 0u);
}

TEST_F(OutputFileTest, FollowsALink) {
    const fs::path link = folder_.path() / "link";
    std::ofstream(path_) << "before";
    fs::create_symlink("file.json", link);
    OutputFile(link).write("after");
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(text_of(path_), "after");
}

TEST_F(OutputFileTest, CannotBeMadeWhereThereIsNoFolder) {
    EXPECT_THROW(OutputFile("/nonexistent/folder/file.json"), std::runtime_error);
    EXPECT_THROW(OutputFile(folder_.path()), std::runtime_error) << "a folder itself";
}

TEST_F(OutputFileTest, OfADeviceIsWrittenAsItIs) {
    EXPECT_THROW(OutputFile("/dev/full").write("{}"), std::runtime_error);
    OutputFile("/dev/null").write("{}");
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
    const UniqueFd open(::open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    OutputFile(fmt::format("/dev/fd/{}", open.get())).write("as stdout in a file");
    char text[9] = {};
    EXPECT_EQ(::pread(open.get(), text, 8, 0), 8);
    EXPECT_STREQ(text, "as stdou");
}

TEST_F(OutputFileTest, FollowsALinkToAFileThatIsNotThereYet) {
    const fs::path target = folder_.path() / "target";
    const fs::path link = folder_.path() / "link";
    fs::create_symlink(target, link);
    OutputFile(link.string()).write("new");
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(text_of(target), "new");
}

TEST_F(OutputFileTest, StandsAloneWhereNothingCanStandBesideIt) {
    const fs::path path = folder_.path() / std::string(250, 'x');  // no room for another ending
    OutputFile(path.string()).write("new");
    EXPECT_EQ(text_of(path), "new");
    EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, IsOneWithItselfHoweverItIsCalled) {
    const fs::path link = folder_.path() / "link";
    fs::create_symlink(folder_.path(), link);
    EXPECT_TRUE(are_one_file(path_, path_));
    EXPECT_TRUE(are_one_file(path_, link / "." / "file.json"));
    EXPECT_TRUE(are_one_file("a.json", "./a.json"));
    EXPECT_FALSE(are_one_file("a.json", "a.svg"));
    EXPECT_FALSE(are_one_file("", ""));
    EXPECT_FALSE(are_one_file("/dev/null", "/dev/null"));
}

TEST(OutputFile, LeavesNothingWhereASignalEndsTheProgram) {
    // No PrivateDirectory, which would go as a whole.
    const fs::path folder = fs::temp_directory_path() / fmt::format("symm-test-{}", ::getpid());
    fs::create_directory(folder);
    EXPECT_EXIT(
        {
            const OutputFile file((folder / "table").string());
            ::raise(SIGTERM);
        },
        testing::KilledBySignal(SIGTERM), "");
    EXPECT_TRUE(fs::is_empty(folder));
    fs::remove_all(folder);
}

}  // namespace
}  // namespace symm
