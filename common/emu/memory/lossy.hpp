#pragma once
/// \file
/// Pairs of GPUs that claim peer access, but lose accesses (SYMM_EMU_LOSSY=0:1:loads+stores).
///
/// While a kernel of the first device of a pair runs, the whole process sees private copies of the
/// second device's memory: README.md has the table of what is lost.

#include <cuda.h>

#include <cstdint>
#include <vector>

namespace symm::emu {

/// Whether copies and fills that `from` makes to memory of `owner` are lost.
bool loses_copies(int from, int owner);

/// Exists while a kernel of `device` runs. Takes the emulator's mutex if the device is in a pair
/// that loses loads or stores.
class LossyView {
public:
    explicit LossyView(int device);
    ~LossyView();
    LossyView(const LossyView&) = delete;
    LossyView& operator=(const LossyView&) = delete;

private:
    struct View {
        CUdeviceptr base;
        /// The words as the kernel first saw them; empty if not inverted.
        std::vector<std::uint32_t> inverted;
        bool stores_arrive;
    };
    std::vector<View> views_;
};

}  // namespace symm::emu
