#pragma once
/// \file
/// The emulated driver: every function of common/driver/functions.inc, with the real one's name,
/// meaning and result codes.

#include "common/driver/table.hpp"

namespace symm::emu {

const DriverTable& emulated_driver();

}  // namespace symm::emu
