#include "common/sys/output_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "common/sys/remove_on_signal.hpp"

namespace symm {
namespace {

std::filesystem::path without_links(const std::string& path) {
    std::error_code ignored;
    auto place = std::filesystem::weakly_canonical(std::filesystem::absolute(path), ignored);
    return place.empty() ? std::filesystem::path(path) : place;
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
    if (path_.empty()) {
        return;
    }
    place_ = without_links(path_);
    std::error_code ignored;
    const auto before = std::filesystem::status(place_, ignored);
    // What /dev/stdout leads to is open elsewhere: another file in its place would be seen by nobody.
    const bool regular = std::filesystem::is_regular_file(before) && !path_.starts_with("/dev/");
    if (regular && ::access(place_.c_str(), W_OK) != 0) {
        refuse(errno);  // moving a file onto it would ask the folder only
    }
    const SignalsHeld until_announced;
    // A link to nothing yet is followed, not replaced.
    if (regular || (!std::filesystem::exists(before) && !std::filesystem::is_symlink(place_))) {
        temporary_ = place_;
        temporary_ += fmt::format(".{}.part", ::getpid());
        file_.open(temporary_, std::ios::binary | std::ios::trunc);
    }
    if (!file_.is_open()) {  // or where nothing can stand beside it
        temporary_.clear();
        file_.clear();
        file_.open(place_, std::ios::binary | std::ios::trunc);
        require_good();
        return;
    }
    remove_on_signal(temporary_, OnSignal::kRemoveOne);
    if (regular) {
        std::filesystem::permissions(temporary_, before.permissions(), ignored);
    }
}

OutputFile::~OutputFile() {
    if (!temporary_.empty()) {
        std::error_code ignored;
        std::filesystem::remove(temporary_, ignored);
        keep_on_signal(temporary_);
    }
}

void OutputFile::write(const std::string& text) {
    file_ << text;
    file_.close();
    require_good();
    if (!temporary_.empty()) {
        std::error_code error;
        std::filesystem::rename(temporary_, place_, error);
        if (error) {
            refuse(error.value());
        }
        keep_on_signal(temporary_);
        temporary_.clear();
    }
}

void OutputFile::refuse(int error) const {
    throw std::runtime_error(fmt::format("{} cannot be written: {}", path_, std::strerror(error)));
}

void OutputFile::require_good() const {
    if (!file_) {
        refuse(errno);
    }
}

bool are_one_file(const std::string& one, const std::string& other) {
    if (one.empty() || other.empty() || without_links(one) != without_links(other)) {
        return false;
    }
    std::error_code ignored;
    return !std::filesystem::is_character_file(without_links(one), ignored);
}

}  // namespace symm
