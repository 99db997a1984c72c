#pragma once
/// \file
/// The environment variables that programs read, all of them in one table: the values of each, its
/// default, and what it does. docs/ENVIRONMENT.md shows the same table.
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
    std::array<std::string_view, 7> words;  ///< The rest is empty.
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
    const char* meaning;
};

inline constexpr Variable kVariables[] = {
    {"SYMM_DRIVER", OneOf{{"auto", "native", "emulated"}}, "auto",
     "the CUDA driver to use if `--driver` is not given"},
    {"SYMM_TIMEOUT", Seconds{}, "30",
     "the limit of every wait, on the host and in kernels (for a Communicator, only if it "
     "is set)"},
    {"SYMM_DEBUG", OneOf{{"error", "warn", "info", "debug"}}, "warn",
     "the lowest severity that is logged to stderr"},
    {"SYMM_CUMEM_ENABLE", Number{0, 1}, "1",
     "0: `mem_alloc` allocates with cuMemAlloc, as with NCCL_CUMEM_ENABLE=0"},
    {"SYMM_FABRIC_ENABLE", Number{0, 1}, "1", "0: ranks do not exchange FABRIC handles"},
    {"SYMM_CUMEM_HOST_ENABLE", Number{0, 1}, "1",
     "0: host segments are POSIX shared memory, not memory of cuMemCreate on a NUMA node"},
    {"SYMM_ALGO", OneOf{{"auto", "oneshot", "sentinel", "push", "twoshot", "chunks", "copy"}},
     "auto",
     "the AllReduce's algorithm if the call does not name one; rank 0's for all ranks, as with "
     "the next four"},
    {"SYMM_BLOCKS", Number{0, 1024}, "0",
     "blocks of an AllReduce's kernel, at most as many as fit; 0: the tuner's choice"},
    {"SYMM_THREADS", Number{0, 512}, "0",
     "threads of each of its blocks, in whole warps; 0: the tuner's choice"},
    {"SYMM_MAX_BLOCKS", Number{0, 1024}, "0",
     "the most blocks of an AllReduce's kernel; 0: as many as fit"},
    {"SYMM_CHECK", Number{0, 1}, "0",
     "1: before each AllReduce the ranks compare their calls and report differences"},
    {"SYMM_TUNING", Text{"a file written by `06_allreduce_tune`"}, "",
     "the tuning table: the algorithm for each size; all ranks use rank 0's file"},
    {"SYMM_NCCL_LIB", Text{"a file"}, "",
     "the NCCL library to compare with, instead of the one found automatically"},

    {"SYMM_EMU_DEVICES", Number{0, 16}, "4", "number of devices; with 0, cuInit fails"},
    {"SYMM_EMU_MEMORY", Bytes{}, "1G", "memory of each device"},
    {"SYMM_EMU_SMS", Number{1, 1024}, "2",
     "multiprocessors of each device, with at most 512 resident threads each"},
    {"SYMM_EMU_P2P", Number{0, 2}, "1",
     "0: no device can access another's memory; 2: they can, but without atomic operations, as "
     "over PCIe"},
    {"SYMM_EMU_FABRIC", Number{0, 1}, "0", "1: FABRIC handles are supported"},
    {"SYMM_EMU_TORN_PACKS", Number{0, 1}, "0",
     "1: a polled 16-byte access (`simt::load_relaxed`, `simt::store_relaxed`) is done in two "
     "halves, in either order, often with a pause in between"},
    {"SYMM_EMU_LOSSY",
     Text{"pairs of the SYMM_EMU_DEVICES devices, as in 0:1,1:0 or 0:1:loads+stores+copies"}, "",
     "the first device's accesses of the named kinds to the second's memory are lost, although the "
     "driver reports peer access; without a kind: stores and copies. In one process (`--mode "
     "thread`), those of other devices' kernels that run meanwhile are lost, too"},
    {"SYMM_EMU_FAIL", Text{"function:call:result, as in cuMemMap:2:CUDA_ERROR_OUT_OF_MEMORY"}, "",
     "that call of that driver function (1 is the first) returns the result; with SIGKILL as the "
     "result the call kills the process"},

    {"SYMM_LAUNCHER", OneOf{{"none"}}, "",
     "none: a launcher's variables are ignored, and the program starts its ranks itself"},
    {"SYMM_RANKS_PER_NODE", Number{0, 64}, "0",
     "how many ranks of an MPI run form a machine; 0: those that share one"},
    {"SYMM_BOOTSTRAP", Text{"a text, the same for all ranks of a run"}, "",
     "the name of the run that a launcher's ranks belong to; a secret text keeps other users from "
     "taking the name first"},
    {"SYMM_RANK", Text{"a number"}, "", "set by the program that spawns ranks: the rank"},
    {"SYMM_RANKS", Text{"a number"}, "",
     "set by the program that spawns ranks: the number of ranks"},
    {"SYMM_CONTROL", Text{"a number"}, "",
     "set by the program that spawns ranks: the descriptor of a socket to it"},
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
