#include "common/sys/format.hpp"

#include <fmt/args.h>
#include <fmt/format.h>

namespace symm {

std::string formatted(std::string_view format, std::initializer_list<FormatValue> values) {
    fmt::dynamic_format_arg_store<fmt::format_context> store;
    for (const FormatValue& value : values) {
        std::visit([&](const auto& one) { store.push_back(one); }, value);
    }
    return fmt::vformat(format, store);
}

}  // namespace symm
