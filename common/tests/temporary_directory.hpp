#pragma once
/// \file
/// A temporary directory for a test.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace symm {

/// A new directory under $TMPDIR or /tmp. The destructor removes it and all that is in it.
class TemporaryDirectory {
public:
    TemporaryDirectory() {
        std::string name = std::filesystem::temp_directory_path() / "symm-test-XXXXXX";
        EXPECT_NE(::mkdtemp(name.data()), nullptr) << name;
        path_ = name;
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory() {
        std::error_code ignored;  // a program that the test started may still be writing
        std::filesystem::remove_all(path_, ignored);
    }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace symm
