#include "common/cli/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "common/cli/usage_error.hpp"
#include "common/emu/configuration.hpp"
#include "common/sys/deadline.hpp"

namespace symm {
namespace {

std::string_view value_of(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? "" : text;
}

void require_one_of(const char* variable, const std::vector<std::string_view>& words) {
    const std::string_view text = value_of(variable);
    if (!text.empty() && std::find(words.begin(), words.end(), text) == words.end()) {
        throw UsageError(fmt::format("{}={} is not understood: give {}", variable, text,
                                     fmt::join(words, " or ")));
    }
}

}  // namespace

void require_environment() {
    require_one_of("SYMM_DRIVER", {"auto", "native", "emulated"});
    require_one_of("SYMM_DEBUG", {"error", "warn", "info", "debug", "trace"});
    require_one_of("SYMM_LAUNCHER", {"none"});
    for (const char* variable :
         {"SYMM_CUMEM_ENABLE", "SYMM_FABRIC_ENABLE", "SYMM_CUMEM_HOST_ENABLE"}) {
        require_one_of(variable, {"0", "1"});
    }
    const std::string_view timeout = value_of("SYMM_TIMEOUT");
    if (!timeout.empty() && !Deadline::limit_in(timeout)) {
        throw UsageError(fmt::format(
            "SYMM_TIMEOUT={} is not understood: give seconds, as in 30 or 0.5", timeout));
    }
    try {
        emu::read_configuration();
    } catch (const std::invalid_argument& error) {
        throw UsageError(error.what());
    }
}

}  // namespace symm
