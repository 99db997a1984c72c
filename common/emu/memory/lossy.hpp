#pragma once
/// \file
/// Pairs of GPUs that claim peer access, but lose accesses (SYMM_EMU_LOSSY=0:1:loads+stores). There
/// are real machines that do that, so lab 02 checks every pair. With this, its check can be tested.
///
/// All devices of a process see the same pages. So while a kernel of the first device of a pair
/// runs, the whole process sees private copies (MAP_PRIVATE) of the second device's memory:
///
/// | lost   | the kernel sees                 | when it has ended                      |
/// |--------|---------------------------------|----------------------------------------|
/// | stores | copies                          | they are dropped                       |
/// | loads  | copies with every word inverted | words it changed are written to memory |
/// | both   | copies with every word inverted | they are dropped                       |
///
/// Where only loads are lost, a store of exactly the inverted value is lost too: the word then
/// looks unchanged. Kernels of other devices that run meanwhile in the same process see the copies,
/// too. So where ranks use a lossy pair together, they should be processes.

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
