#pragma once
/// \file
/// What the emulated driver tells people, on stderr: why it refused what a GPU might have taken,
/// and what a kernel did wrong. Result codes say too little for that.

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>

namespace symm::emu {

/// One line, written whole.
template <class... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    const std::string line =
        "emulated driver: " + fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace symm::emu
