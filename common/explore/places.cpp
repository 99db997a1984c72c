#include "common/explore/places.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>

namespace symm::explore {
namespace {

using Lines = std::map<void*, std::vector<std::string>>;

bool is_below_kernels(const std::string& line) {
    for (const char* part :
         {"/cuda", "/c++/", "/fmt/", "/common/simt/", "/common/explore/", "??"}) {
        if (line.find(part) != std::string::npos) {
            return true;
        }
    }
    return false;
}

// Asks llvm-symbolizer for all at once. Its answer for an address is a line for each function
// inlined there, the innermost first, and an empty line.
void look_up(Lines& lines) {
    std::array<char, 512> program{};
    std::array<char, 32> questions{"/tmp/symm_explore_XXXXXX"};
    const int file = ::mkstemp(questions.data());
    if (file < 0 || ::readlink("/proc/self/exe", program.data(), program.size() - 1) < 0) {
        return;
    }
    ::close(file);
    {
        std::ofstream out(questions.data());
        for (const auto& [address, found] : lines) {
            out << fmt::format("{}\n", fmt::ptr(static_cast<char*>(address) - 1));
        }
    }
    const std::string command = fmt::format(
        "$(command -v llvm-symbolizer llvm-symbolizer-14 | head -1) --functions=none -e '{}' <{}",
        program.data(), questions.data());
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
    auto at = lines.begin();
    std::array<char, 1024> buffer{};
    while (pipe != nullptr && at != lines.end() &&
           std::fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr) {
        std::string line = buffer.data();
        line.resize(line.find_last_not_of('\n') + 1);
        if (line.empty()) {
            ++at;
        } else if (!is_below_kernels(line)) {
            line.resize(line.rfind(':'));  // without the column
            if (line.ends_with(":0")) {    // merged by an optimization
                continue;
            }
            at->second.push_back(line.substr(line.rfind('/') + 1));
        }
    }
    ::unlink(questions.data());
}

}  // namespace

std::vector<std::vector<std::string>> places_of(const std::vector<std::vector<void*>>& accesses) {
    Lines lines;
    for (const auto& addresses : accesses) {
        for (void* const address : addresses) {
            lines[address];
        }
    }
    look_up(lines);
    std::vector<std::vector<std::string>> places;
    for (const auto& addresses : accesses) {
        auto& place = places.emplace_back();
        for (void* const address : addresses) {
            place.insert(place.end(), lines[address].begin(), lines[address].end());
        }
    }
    return places;
}

}  // namespace symm::explore
