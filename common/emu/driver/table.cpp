#include "common/emu/driver/table.hpp"

#include "common/emu/errors.hpp"
#include "common/emu/faults.hpp"

namespace symm::emu {

#define SYMM_DRIVER_FUNCTION(name, parameters, arguments) void name parameters;
#include "common/driver/functions.inc"
#undef SYMM_DRIVER_FUNCTION

namespace {

// cuInit counts its call itself, since it first reads which calls are to fail; cuStreamSynchronize
// does, since it waits before it fails.
constexpr bool enters_itself(std::size_t function) {
    return function == index_of_function("cuInit") ||
           function == index_of_function("cuStreamSynchronize");
}

/// An emulated function as a member of the table.
template <std::size_t number, auto function>
struct Answering;
template <std::size_t number, class... Parameters, void (*function)(Parameters...)>
struct Answering<number, function> {
    static CUresult call(Parameters... parameters) noexcept {
        return answer([&] {
            refuse_if_forked();
            if constexpr (!enters_itself(number)) {
                enter(number);
            }
            function(parameters...);
        });
    }
};

}  // namespace

const DriverTable& emulated_driver() {
    static constexpr DriverTable kTable = {
#define SYMM_DRIVER_FUNCTION(name, parameters, arguments) \
    &Answering<index_of_function(#name), &emu::name>::call,
#include "common/driver/functions.inc"
#undef SYMM_DRIVER_FUNCTION
    };
    return kTable;
}

}  // namespace symm::emu
