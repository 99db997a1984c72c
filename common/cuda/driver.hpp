#pragma once
/// \file
/// Which driver is used: the real one, or the emulated one of common/emu.
///
/// Code here calls the driver by its real names. Nothing links libcuda: forward.cpp defines those
/// names and sends each call through a table, filled at the first call from libcuda.so.1 (as
/// in NCCL's src/misc/cudawrap.cc) or from the emulated driver.

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "common/driver/table.hpp"

namespace symm {

/// Chooses the driver before its first call: "native" (the real one), "emulated", or "auto": the
/// real one if it loads and sees a GPU, else the emulated one. Without this call the environment
/// variable SYMM_DRIVER decides; if that is not set either, it is "auto". If the real driver is
/// there but broken, "auto" logs a warning. Throws
/// std::invalid_argument for any other name, std::logic_error if a driver is in use and `name` is
/// not the one chosen before.
void choose_driver(std::string_view name);

/// Whether the driver in use is the emulated one; loads it. Throws std::runtime_error if
/// "native" was asked for and fails.
[[nodiscard]] bool is_emulated();

/// One line for people: `driver: emulated (libcuda.so.1 cannot be loaded), 4 devices`.
std::string describe_driver();

/// The process that loaded the driver, if this one is a child that fork() has made of it since.
[[nodiscard]] std::optional<pid_t> driver_of_parent();

/// The table of the driver in use; loads it at the first call. In a child of fork() whose parent
/// has loaded the real driver, every function of it answers CUDA_ERROR_NOT_INITIALIZED: there the
/// driver's own functions answer so, or crash.
const DriverTable& driver_table();

/// Replaces the table in use by `table`, for a trace of all calls. It has to outlive its
/// use by any thread.
void use_driver_table(const DriverTable* table);

/// Thrown if the real driver cannot be used.
struct NoNativeDriver {
    std::string reason;
    std::string_view remedy = "";
    bool broken = true;  ///< There is a driver, which fails: not merely no libcuda, or no GPU.
};

/// The table of libcuda.so.1 (native_driver.cpp). Throws NoNativeDriver.
DriverTable native_driver();

}  // namespace symm
