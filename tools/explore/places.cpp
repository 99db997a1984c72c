#include "tools/explore/places.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "common/sys/process.hpp"

namespace symm::explore {
namespace {

bool is_below_kernels(const std::string& line) {
    static constexpr const char* kParts[] = {"/cuda", "/c++/", "/fmt/", "/common/simt/", "??"};
    static constexpr std::string_view kExplorer = "/tools/explore/";  // not its folders
    const std::size_t explorer = line.find(kExplorer);
    return (explorer != std::string::npos &&
            line.find('/', explorer + kExplorer.size()) == std::string::npos) ||
           std::ranges::any_of(
               kParts, [&](const char* part) { return line.find(part) != std::string::npos; });
}

/// Where a file's name begins: with its building, or, outside of this repository, without a folder.
/// The last one counts: the repository's own folder may be called symm.
std::size_t begin_of_name(const std::string& path) {
    std::size_t begin = 0;
    for (const char* building : {"/labs/", "/common/", "/symm/", "/tools/"}) {
        begin = std::max(begin, path.rfind(building) + 1);  // 0 if there is none
    }
    return begin != 0 ? begin : path.rfind('/') + 1;
}

/// The output of a command that ran well, at its start; else nothing.
std::ifstream output_of(Command command) {
    const UniqueFd output(::memfd_create("symm_explore", MFD_CLOEXEC));
    command.standard_output = output.get();
    try {
        const auto status = Process(command).wait(Deadline::standard());
        if (status && status->success()) {
            return std::ifstream(fmt::format("/proc/self/fd/{}", output.get()));
        }
    } catch (const std::system_error&) {  // there is no such program
    }
    return {};
}

}  // namespace

// Asks llvm-symbolizer for all at once. Its answer for an address is a line for each function
// inlined there, the innermost first, and an empty line.
void look_up(Places& places) {
    std::error_code none;
    Command command;
    command.arguments = {"llvm-symbolizer", "--functions=none", "-e",
                         std::filesystem::read_symlink("/proc/self/exe", none)};
    for (const auto& [address, found] : places) {
        command.arguments.push_back(fmt::format("{}", fmt::ptr(static_cast<char*>(address) - 1)));
    }
    std::ifstream answer = output_of(command);
    if (!answer.is_open()) {
        command.arguments[0] = "llvm-symbolizer-14";
        answer = output_of(command);
    }
    auto at = places.begin();
    for (std::string line; at != places.end() && std::getline(answer, line);) {
        if (line.empty()) {
            ++at;
        } else if (!is_below_kernels(line)) {
            line.resize(line.rfind(':'));  // without the column
            if (line.ends_with(":0")) {    // merged by an optimization
                continue;
            }
            line = std::filesystem::path(line).lexically_normal();  // without "../"
            at->second.push_back(line.substr(begin_of_name(line)));
        }
    }
}

}  // namespace symm::explore
