#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "tools/trace/arguments.hpp"
#include "tools/trace/driver_calls.hpp"

namespace symm {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kLongestSequence = 24;

/// The beginnings of names of functions that change nothing that other calls of a list see.
constexpr const char* kAsking =
    "cuInit cuGetProcAddress cuDriverGetVersion cuModuleGetLoadingMode cuDeviceGet "
    "cuDeviceTotalMem cuDeviceCanAccessPeer cuCtxGet cuCtxSetCurrent cuCtxPushCurrent "
    "cuCtxPopCurrent cuThreadExchangeStreamCaptureMode cuStreamIsCapturing cuStreamGetCaptureInfo "
    "cuPointerGetAttribute cuKernelGet cuKernelSetAttribute cuFuncGet cuFuncSetAttribute "
    "cuLibraryGetKernel cuOccupancy";

bool only_asks(const std::string& name) {
    std::istringstream beginnings(kAsking);
    return std::any_of(std::istream_iterator<std::string>(beginnings), {},
                       [&](const std::string& beginning) { return name.starts_with(beginning); });
}

bool alike(const DriverCall& a, const DriverCall& b) {
    return a.name == b.name && a.failed == b.failed;
}

/// How many times in a row calls like the `length` ones from `first` on are made.
std::size_t times(const std::vector<DriverCall>& calls, std::size_t first, std::size_t length) {
    std::size_t same = 0;
    while (first + length + same < calls.size() &&
           alike(calls[first + same], calls[first + length + same])) {
        ++same;
    }
    return 1 + same / length;
}

/// Adds a line, broken after a comma if it is too long.
void add_line(std::vector<std::string>& lines, std::string line) {
    const std::size_t indent = line.find_first_not_of(' ') + 4;
    while (line.size() > kColumns) {
        const std::size_t comma = line.rfind(", ", kColumns - 1);
        if (comma == std::string::npos || comma < indent) {
            break;
        }
        lines.push_back(line.substr(0, comma + 1));
        line = std::string(indent, ' ') + line.substr(comma + 2);
    }
    lines.push_back(line);
}

}  // namespace

std::vector<std::string> folded(const std::vector<DriverCall>& calls) {
    std::vector<DriverCall> shown;
    std::map<std::string, int> asked;
    for (const DriverCall& call : calls) {
        if (only_asks(call.name)) {
            ++asked[std::string(trace::without_version(call.name))];
        } else {
            shown.push_back(call);
        }
    }
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < shown.size();) {
        std::size_t length = 1;  // of the sequence whose repetitions save the most lines
        std::size_t saved = 0;
        for (std::size_t l = 1; l <= kLongestSequence && at + l <= shown.size(); ++l) {
            if (const std::size_t saves = (times(shown, at, l) - 1) * l; saves > saved) {
                length = l;
                saved = saves;
            }
        }
        const bool repeated = saved != 0;
        if (repeated) {
            lines.push_back(fmt::format("    {} times:", saved / length + 1));
        }
        for (std::size_t i = at; i < at + length; ++i) {
            add_line(lines, fmt::format("    {}{}", repeated ? "    " : "", shown[i].text));
        }
        at += length + saved;
    }
    if (!asked.empty()) {
        std::vector<std::string> counts;
        for (const auto& [name, count] : asked) {
            counts.push_back(count == 1 ? name : fmt::format("{} {} times", name, count));
        }
        add_line(lines, fmt::format("    and to ask or select: {}", fmt::join(counts, ", ")));
    }
    return lines;
}

}  // namespace symm
