#pragma once
/// \file
/// Pairs of GPUs that claim peer access and do not carry it (SYMM_EMU_LOSSY=a:b:loads+stores). Real machines
/// do that, and a self-test (lab 02) that nothing ever fails tests nothing.
///
/// Pages know no devices, so while a kernel of device a runs, this process sees other pages where
/// memory of b is mapped that a may touch:
///
/// | lost   | the kernel sees                        | when it has ended                     |
/// |--------|----------------------------------------|---------------------------------------|
/// | stores | copies (MAP_PRIVATE)                   | they are dropped                      |
/// | loads  | copies with every word inverted        | words it changed go to the memory     |
/// | both   | copies with every word inverted        | they are dropped                      |
///
/// A changed word of four bytes is how a store is recognised: one of the inverted word itself is
/// taken for none.

#include <cuda.h>

#include <cstdint>
#include <vector>

namespace symm::emu {

/// Whether copies and fills that `from` makes to memory of `owner` are lost.
bool loses_copies(int from, int owner);

/// Shows this process what a kernel of `device` is to see, while it lives. Takes the emulator's
/// mutex where there is anything to show.
class LossyView {
public:
    explicit LossyView(int device);
    ~LossyView();
    LossyView(const LossyView&) = delete;
    LossyView& operator=(const LossyView&) = delete;

private:
    struct Shown {
        CUdeviceptr base;
        bool stores_arrive;
        std::vector<std::uint32_t> held;  ///< What the memory held; empty where loads are right.
    };
    std::vector<Shown> shown_;
};

}  // namespace symm::emu
