#include "common/emu/emulator.hpp"

#include "common/emu/contexts.hpp"
#include "common/emu/graphs.hpp"
#include "common/emu/streams.hpp"

namespace symm::emu {

Emulator& emulator() {
    static Emulator& kept = *new Emulator;
    return kept;
}

bool is_device(int ordinal) {
    return ordinal >= 0 && ordinal < emulator().configuration.devices;
}

}  // namespace symm::emu
