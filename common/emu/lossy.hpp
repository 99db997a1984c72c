#pragma once
/// \file
/// Pairs of GPUs that claim peer access, but lose accesses (SYMM_EMU_LOSSY=0:1:loads+stores). Real
/// machines do that, so lab 02 tests every pair; this tests that test.
///
/// Pages are the same for all devices. So while a kernel of the first device runs, this process
/// sees private copies (MAP_PRIVATE) of the second device's memory:
///
/// | lost   | the kernel sees                 | when it has ended                     |
/// |--------|---------------------------------|---------------------------------------|
/// | stores | copies                          | they are dropped                      |
/// | loads  | copies with every word inverted | words it changed go to the memory     |
/// | both   | copies with every word inverted | they are dropped                      |
///
/// A store of exactly the inverted word is not recognised.

#include <cuda.h>

#include <cstdint>
#include <vector>

namespace symm::emu {

/// Whether copies and fills that `from` makes to memory of `owner` are lost.
bool loses_copies(int from, int owner);

/// Exists while a kernel of `device` runs. Takes the emulator's mutex where the device is in a pair
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
        std::vector<std::uint32_t>
            inverted;  ///< The words it began with; empty where not inverted.
        bool stores_arrive;
    };
    std::vector<View> views_;
};

}  // namespace symm::emu
