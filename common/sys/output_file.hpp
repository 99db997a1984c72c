#pragma once
/// \file
/// A file that is there whole or not at all: a measurement that fails must not cost the results of the last.

#include <filesystem>
#include <fstream>
#include <string>

namespace symm {

/// Opened before there is something to write, so that a bad path is told at once; what stood there
/// before stays until there is. It is written beside its place and moved there at the end. Devices
/// and pipes, which cannot be moved onto, are written as they are, and so is a file whose folder takes no other.
class OutputFile {
public:
    /// An empty path is no file. Throws std::runtime_error naming it.
    explicit OutputFile(std::string path);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    /// Removes what was not finished.
    ~OutputFile();

    /// Writes all there is to write, once. Throws std::runtime_error.
    void write(const std::string& text);
    explicit operator bool() const { return !path_.empty(); }

private:
    [[noreturn]] void refuse(int error) const;
    void require_good() const;

    std::string path_;
    std::filesystem::path place_;      ///< The path without symbolic links.
    std::filesystem::path temporary_;  ///< Beside it; empty where there is none.
    std::ofstream file_;
};

/// Whether both paths name one file, be it there or not yet. False where one is empty, and for devices.
bool are_one_file(const std::string& one, const std::string& other);

}  // namespace symm
