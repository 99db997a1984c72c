// Files that a user names.

#include "common/sys/file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "common/sys/usage_error.hpp"
#include "common/tests/temporary_directory.hpp"

namespace symm {
namespace {

TEST(File, IsReadAndWrittenAsAWhole) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() / "file";
    write_file(path, "first", "--to");
    write_file(path, "second", "--to");
    EXPECT_EQ(read_file(path, "--from"), "second");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(File, IsRegularAndSmall) {
    const TemporaryDirectory directory;
    const std::string fifo = directory.path() / "fifo";
    const std::string large = directory.path() / "large";
    const std::string dangling = directory.path() / "dangling";
    const std::string loop = directory.path() / "loop";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    write_file(large, std::string(kMostFileBytes + 1, 'x'), "--to");
    std::filesystem::create_symlink("missing", dangling);
    std::filesystem::create_symlink("loop", loop);
    const std::string name = directory.path() / std::string(255, 'x');  // the longest there can be
    for (const std::string& path :
         {fifo, large, directory.path().string(), std::string("/dev/zero"), large + "/x"}) {
        EXPECT_THROW(read_file(path, "--from"), UsageError) << path;
    }
    for (const std::string& path :
         {fifo, directory.path().string(), std::string("/dev/full"), std::string(),
          std::string("/nowhere/file"), dangling, loop, name + "x"}) {
        EXPECT_THROW(write_file(path, "text", "--to"), UsageError) << path;
    }
    EXPECT_TRUE(std::filesystem::is_symlink(dangling) && std::filesystem::is_symlink(loop));
    write_file(name, "text", "--to");
}

TEST(File, KeepsItsModeAndItsOwner) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() / "file";
    write_file(path, "old", "--to");
    constexpr uid_t kNobody = 65534;
    const bool given = ::chown(path.c_str(), kNobody, kNobody) == 0;  // root alone may
    ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
    write_file(path, "new", "--to");
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0640u);
    EXPECT_EQ(status.st_uid, given ? kNobody : ::geteuid());
    EXPECT_EQ(read_file(path, "--from"), "new");
}

TEST(File, IsAnErrorThatNamesItsCauseOnAFullDisk) {
    const TemporaryDirectory directory;
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit little{100, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &little);
    try {
        write_file(directory.path() / "file", std::string(200, 'x'), "--to file");
        ADD_FAILURE() << "nothing was thrown";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::file_too_large) << error.what();
    }
    ::setrlimit(RLIMIT_FSIZE, &before);
}

}  // namespace
}  // namespace symm
