// Records the emulated driver's calls, in a table of functions that forward to its own.

#include "common/cuda/driver.hpp"
#include "common/driver/symbol_name.hpp"
#include "common/emu/kernels/launch.hpp"
#include "tools/trace/recording.hpp"

namespace symm::trace {
namespace {

const DriverTable* emulated = nullptr;

#define SYMM_DRIVER_FUNCTION(name, parameters, arguments)    \
    CUresult traced_##name parameters {                      \
        const CUresult result = emulated->name##_ arguments; \
        const auto slots = slots_of arguments;               \
        add(SYMM_SYMBOL_NAME(name), slots.data(), result);   \
        return result;                                       \
    }
#include "common/driver/functions.inc"
#undef SYMM_DRIVER_FUNCTION

DriverTable traced_table() {
    DriverTable table;
#define SYMM_DRIVER_FUNCTION(name, parameters, arguments) table.name##_ = &traced_##name;
#include "common/driver/functions.inc"
#undef SYMM_DRIVER_FUNCTION
    // The emulator reports each launch.
    table.cuLaunchKernel_ = emulated->cuLaunchKernel_;
    table.cuLaunchKernelEx_ = emulated->cuLaunchKernelEx_;
    return table;
}

void add_launch(CUstream stream, const emu::KernelLaunch& launch, CUresult result) {
    const CUfunction function = nullptr;
    const auto shared_bytes = static_cast<unsigned int>(launch.shared_bytes);
    void** const none = nullptr;
    const auto slots =
        slots_of(function, launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x,
                 launch.block.y, launch.block.z, shared_bytes, stream, none, none);
    add("cuLaunchKernel", slots.data(), result, launch.name.c_str());
}

}  // namespace

void forward_through_trace() {
    emulated = &driver_table();
    static const DriverTable table = traced_table();
    use_driver_table(&table);
    emu::launch_observer = &add_launch;
}

}  // namespace symm::trace
