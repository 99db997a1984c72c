#include "labs/01_vmm_alloc/drawing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/cli/bytes.hpp"

namespace symm {

namespace {

constexpr std::size_t kBar = 64;  // columns of draw_pieces

std::string boxed(bool there, const std::string& text, bool edge) {
    if (!there) {
        return std::string(26, ' ');
    }
    return edge ? "+" + std::string(24, '-') + "+" : fmt::format("| {:<22} |", text);
}

}  // namespace

std::string draw(const Picture& picture) {
    const bool reserved = picture.base != 0;
    const bool created = !picture.memory.empty();
    const std::string size = format_bytes(picture.bytes);
    const std::string first = reserved ? fmt::format("{:#x}", picture.base) : "";
    const std::string last = reserved ? fmt::format("{:#x}", picture.base + picture.bytes) : "";
    const std::string who = reserved ? "open to " + picture.access : "";
    const char* arrow = picture.mapped ? "------>" : "       ";

    std::string text;
    const auto line = [&](const std::string& address, const std::string& left, const char* between,
                          const std::string& right) {
        std::string made = fmt::format("    {:>18} {} {} {}", address, left, between, right);
        made.erase(made.find_last_not_of(' ') + 1);
        text += made + '\n';
    };
    line("", fmt::format("{:<26}", reserved ? "addresses" : ""), "       ",
         created ? "memory of " + picture.memory : "");
    line(first, boxed(reserved, "", true), "       ", boxed(created, "", true));
    line("", boxed(reserved, size + " reserved", false), arrow,
         boxed(created, size + " created", false));
    line("", boxed(reserved, who, false), "       ", boxed(created, "", false));
    line(last, boxed(reserved, "", true), "       ", boxed(created, "", true));
    return text;
}

std::string draw_pieces(const std::vector<std::size_t>& pieces, std::size_t capacity) {
    std::string bar(kBar, '.');
    std::size_t offset = 0;
    char letter = 'A';
    for (std::size_t bytes : pieces) {
        const auto column = [&](std::size_t at) {
            return static_cast<std::size_t>(
                static_cast<double>(at) / static_cast<double>(std::max<std::size_t>(capacity, 1)) *
                kBar);
        };
        const std::size_t from = std::min(column(offset), kBar - 1);
        const std::size_t to = std::clamp(column(offset + bytes), from + 1, kBar);
        std::fill(bar.begin() + static_cast<std::ptrdiff_t>(from),
                  bar.begin() + static_cast<std::ptrdiff_t>(to), letter);
        letter = letter == 'Z' ? 'A' : static_cast<char>(letter + 1);
        offset += bytes;
    }
    return "[" + bar + "]";
}

}  // namespace symm
