#pragma once
/// \file
/// The emulated driver's messages on stderr: why it refuses what a GPU might accept, and what a
/// kernel did wrong. Result codes say too little for that.

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "common/sys/print.hpp"

namespace symm::emu {

/// A text of limited length. It needs no heap: memory may be what has run out.
class Text {
public:
    template <class... Arguments>
    explicit Text(fmt::format_string<Arguments...> format, Arguments&&... arguments)
        : size_(std::min(sizeof(text_), fmt::format_to_n(text_, sizeof(text_), format,
                                                         std::forward<Arguments>(arguments)...)
                                            .size)) {}
    operator std::string_view() const { return {text_, size_}; }

private:
    char text_[500];
    std::size_t size_;
};

/// Writes one line.
template <class... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    const Text line("emulated driver: {}\n",
                    std::string_view(Text(format, std::forward<Arguments>(arguments)...)));
    write_text(STDERR_FILENO, line);
}

}  // namespace symm::emu
