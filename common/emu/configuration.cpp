#include "common/emu/configuration.hpp"

#include <limits>
#include <optional>
#include <string_view>

#include "common/emu/faults.hpp"
#include "common/environment/environment.hpp"
#include "common/sys/number.hpp"

namespace symm::emu {
namespace {

std::optional<unsigned long> whole_number(std::string_view text) {
    return number_in(text, 0UL, std::numeric_limits<unsigned long>::max());
}

/// The parts of a list: "a,b" is two, "" is none.
std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const std::size_t end = text.find(at);
        parts.push_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return parts;
}

/// Takes over what `words` (`loads+copies`) says is lost. False where it is not understood.
bool set_what_is_lost(LossyPair& pair, std::string_view words) {
    pair.loads = pair.stores = pair.copies = false;
    for (const std::string_view word : split(words, '+')) {
        if (word != "loads" && word != "stores" && word != "copies") {
            return false;
        }
        (word == "loads" ? pair.loads : word == "stores" ? pair.stores : pair.copies) = true;
    }
    return true;
}

std::vector<LossyPair> lossy_pairs(int devices) {
    constexpr env::Name<env::Text> kVariable = "SYMM_EMU_LOSSY";
    const std::string text = env::text(kVariable);
    std::vector<LossyPair> pairs;
    for (const std::string_view item : split(text, ',')) {
        const auto parts = split(item, ':');
        const bool whole = (parts.size() == 2 || parts.size() == 3) && !item.ends_with(':') &&
                           !item.ends_with('+');
        const auto from = whole ? whole_number(parts[0]) : std::nullopt;
        const auto owner = whole ? whole_number(parts[1]) : std::nullopt;
        const auto known = [&](const auto& end) {
            return end && *end < static_cast<unsigned>(devices);
        };
        LossyPair pair;
        if (!known(from) || !known(owner) || *from == *owner ||
            (parts.size() == 3 && !set_what_is_lost(pair, parts[2]))) {
            env::refuse(*kVariable, text);
        }
        pair.from = static_cast<int>(*from);
        pair.owner = static_cast<int>(*owner);
        pairs.push_back(pair);
    }
    return pairs;
}

CUresult result_named(std::string_view name) {
    static constexpr std::pair<std::string_view, CUresult> kResults[] = {
#define SYMM_RESULT(code) {#code, code},
#include "common/cuda/results.inc"
#undef SYMM_RESULT
    };
    for (const auto& [known, result] : kResults) {
        if (known == name) {
            return result;
        }
    }
    return CUDA_SUCCESS;  // not a failure
}

std::vector<PlannedFailure> planned_failures() {
    constexpr env::Name<env::Text> kVariable = "SYMM_EMU_FAIL";
    const std::string text = env::text(kVariable);
    std::vector<PlannedFailure> failures;
    for (const std::string_view item : split(text, ',')) {
        const auto parts = split(item, ':');
        const auto call = parts.size() == 3 ? whole_number(parts[1]) : std::nullopt;
        if (!call || *call == 0 || *call > 1'000'000'000 || !is_driver_function(parts[0]) ||
            (parts[2] != "SIGKILL" && result_named(parts[2]) == CUDA_SUCCESS)) {
            env::refuse(*kVariable, text);
        }
        PlannedFailure failure{std::string(parts[0]), static_cast<long>(*call), std::nullopt};
        if (parts[2] != "SIGKILL") {
            failure.result = result_named(parts[2]);
        }
        failures.push_back(failure);
    }
    return failures;
}

}  // namespace

Configuration read_configuration() {
    Configuration configuration;
    configuration.devices = static_cast<int>(env::number("SYMM_EMU_DEVICES"));
    configuration.memory = env::bytes("SYMM_EMU_MEMORY");
    configuration.multiprocessors = static_cast<int>(env::number("SYMM_EMU_SMS"));
    configuration.peer_access = env::number("SYMM_EMU_P2P") == 1;
    configuration.fabric = env::number("SYMM_EMU_FABRIC") == 1;
    configuration.torn_packs = env::number("SYMM_EMU_TORN_PACKS") == 1;
    configuration.lossy = lossy_pairs(configuration.devices);
    configuration.failures = planned_failures();
    return configuration;
}

}  // namespace symm::emu
