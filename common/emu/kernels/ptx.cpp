#include "common/emu/kernels/ptx.hpp"

#include <algorithm>
#include <cctype>

#include "common/emu/errors.hpp"

namespace symm::emu {
namespace {

// Directives begin with a dot, names may contain _ $ and %.
bool is_in_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("._$%").find(c) != std::string_view::npos;
}

// Removes the rest of a comment or string, up to and including `end`, from the text.
void skip_past(std::string_view& text, std::string_view end) {
    const std::size_t at = text.find(end);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + end.size());
}

// Removes and returns the text's next word or sign; empty at its end. Skips comments and strings.
std::string_view next_word(std::string_view& text) {
    while (!text.empty()) {
        if (text.starts_with("//")) {
            skip_past(text, "\n");
        } else if (text.starts_with("/*")) {
            skip_past(text, "*/");
        } else if (text.front() == '"') {
            text.remove_prefix(1);
            skip_past(text, "\"");
        } else if (std::isspace(static_cast<unsigned char>(text.front())) != 0) {
            text.remove_prefix(1);
        } else {
            const auto end = std::ranges::find_if_not(text, is_in_word);
            const auto size =
                std::max<std::size_t>(1, static_cast<std::size_t>(end - text.begin()));
            const std::string_view word = text.substr(0, size);
            text.remove_prefix(size);
            return word;
        }
    }
    return {};
}

}  // namespace

std::vector<std::string> entries_of(std::string_view ptx) {
    refuse_if(next_word(ptx) != ".version", CUDA_ERROR_INVALID_IMAGE);
    next_word(ptx);  // its number
    refuse_if(next_word(ptx) != ".target", CUDA_ERROR_INVALID_PTX);
    std::vector<std::string> names;
    for (std::string_view word = next_word(ptx); !word.empty(); word = next_word(ptx)) {
        if (word == ".entry") {
            const std::string_view name = next_word(ptx);
            refuse_if(name.empty() || name.front() == '.' || !is_in_word(name.front()),
                      CUDA_ERROR_INVALID_PTX);
            names.emplace_back(name);
        }
    }
    return names;
}

}  // namespace symm::emu
