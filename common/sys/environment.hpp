#pragma once
/// \file
/// The environment variables that programs read, all of them in one table: the values of each, and
/// its default. docs/ENVIRONMENT.md says what they do.
///
/// An empty variable counts as one that is not set. A value that is not allowed is bad usage:
/// programs check all variables when they start (require_environment()).

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

namespace symm::env {

/// The kinds of values that a variable may hold.
struct OneOf {
    std::array<std::string_view, 4> words;  ///< The rest is empty.
};
struct Number {
    long least, most;
};
struct Bytes {};    ///< As bytes_in() reads them, but not 0.
struct Seconds {};  ///< A millisecond to a day.
struct Text {
    std::string_view form;  ///< The code that reads the variable checks it.
};

struct Variable {
    const char* name;
    std::variant<OneOf, Number, Bytes, Seconds, Text> values;
    const char* standard;  ///< The default, or empty for none.
};

inline constexpr Variable kVariables[] = {
    {"SYMM_DRIVER", OneOf{{"auto", "native", "emulated"}}, "auto"},
    {"SYMM_TIMEOUT", Seconds{}, "30"},
    {"SYMM_DEBUG", OneOf{{"error", "warn", "info", "debug"}}, "warn"},
    {"SYMM_CUMEM_ENABLE", Number{0, 1}, "1"},
    {"SYMM_FABRIC_ENABLE", Number{0, 1}, "1"},
    {"SYMM_CUMEM_HOST_ENABLE", Number{0, 1}, "1"},
    {"SYMM_ALGO", Text{"a word that `06_allreduce --algo` takes"}, "auto"},
    {"SYMM_BLOCKS", Number{0, 1024}, "0"},
    {"SYMM_THREADS", Number{0, 512}, "0"},
    {"SYMM_MAX_BLOCKS", Number{0, 1024}, "0"},
    {"SYMM_DEPENDENT_LAUNCH", Number{0, 1}, "1"},
    {"SYMM_CHECK", Number{0, 1}, "0"},
    {"SYMM_MULTICAST", Number{0, 1}, "0"},
    {"SYMM_ALGORITHMS", Text{"a shared object with algorithms of your own"}, ""},
    {"SYMM_TUNING", Text{"a file written by `06_allreduce_tune`"}, ""},
    {"SYMM_NCCL_LIB", Text{"a file"}, ""},
    {"SYMM_NCCL", Number{0, 1}, "1"},
    {"SYMM_NCCL_COLLECTIVES", OneOf{{"allreduce", "all"}}, "allreduce"},
    {"SYMM_NCCL_STATS", Number{0, 1}, "0"},
    {"SYMM_NCCL_MOST", Bytes{}, ""},

    {"SYMM_EMU_DEVICES", Number{0, 16}, "4"},
    {"SYMM_EMU_MEMORY", Bytes{}, "1G"},
    {"SYMM_EMU_SMS", Number{1, 1024}, "2"},
    {"SYMM_EMU_PAGE", OneOf{{"4K", "16K", "64K"}}, "4K"},
    {"SYMM_EMU_P2P", Number{0, 2}, "1"},
    {"SYMM_EMU_FABRIC", Number{0, 1}, "0"},
    {"SYMM_EMU_MULTICAST", Number{0, 1}, "1"},
    {"SYMM_EMU_TORN_PACKS", Number{0, 1}, "0"},
    {"SYMM_EMU_LOSSY",
     Text{"pairs of the SYMM_EMU_DEVICES devices, as in 0:1,1:0 or 0:1:loads+stores+copies"}, ""},
    {"SYMM_EMU_FAIL", Text{"function:call:result, as in cuMemMap:2:CUDA_ERROR_OUT_OF_MEMORY"}, ""},

    {"SYMM_LAUNCHER", OneOf{{"none"}}, ""},
    {"SYMM_RANKS_PER_NODE", Number{0, 64}, "0"},
    {"SYMM_BOOTSTRAP", Text{"a text, the same for all ranks of a run"}, ""},
    {"SYMM_RANK", Text{"a number"}, ""},
    {"SYMM_RANKS", Text{"a number"}, ""},
    {"SYMM_CONTROL", Text{"a number"}, ""},
};

/// A name of the table whose variable holds `Values`; any other does not compile.
template <class Values>
class Name {
public:
    consteval Name(const char* name) {
        for (const Variable& variable : kVariables) {
            if (std::string_view(variable.name) == name) {
                variable_ = &variable;
            }
        }
        if (variable_ == nullptr || !std::holds_alternative<Values>(variable_->values)) {
            throw std::logic_error("kVariables has no such variable of this kind");
        }
    }
    const Variable& operator*() const { return *variable_; }

private:
    const Variable* variable_ = nullptr;
};

/// The value of the variable, or its default if it is not set. Throw UsageError for a value that
/// it may not hold.
std::string choice(Name<OneOf> name);
long number(Name<Number> name);
std::size_t bytes(Name<Bytes> name);
double seconds(Name<Seconds> name);
std::string text(Name<Text> name);

/// Whether a variable of the table has a value.
bool is_set(const char* name);

/// The value of a variable that is not in the table, such as a launcher's. Empty: it is not set.
std::string foreign(const char* name);

/// The values that a variable may hold, in words.
std::string describe(const Variable& variable);

/// Throws UsageError: `SYMM_TIMEOUT=soon is not understood: give seconds, from 0.001 to 86400`.
[[noreturn]] void refuse(const Variable& variable, std::string_view value);

}  // namespace symm::env

namespace symm {

/// Throws UsageError for the first variable of the table that holds a value it may not hold. Does
/// not check Text: the code that reads it does.
void require_environment();

}  // namespace symm
