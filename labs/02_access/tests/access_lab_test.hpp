#pragma once
/// \file
/// The fixture of this lab's tests: opens all devices, and checks that no case leaves anything.

#include <numeric>
#include <vector>

#include "common/cuda/gpu.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"
#include "labs/02_access/peer_check.hpp"
#include "labs/02_access/peer_matrix.hpp"

namespace symm {

class AccessLabTest : public LabTest {
protected:
    void SetUp() override {
        gpus();  // made once for all cases, before the first count
        LabTest::SetUp();
    }

    /// One per device, kept until the program ends: a real context is slow to create.
    static const std::vector<Gpu>& gpus() {
        static const std::vector<Gpu>& kept = *new std::vector<Gpu>(all_gpus());
        return kept;
    }
    static const Gpu& gpu(int device) { return gpus()[static_cast<std::size_t>(device)]; }
    /// 0, 1, ... for all devices that the driver sees.
    static std::vector<int> all_devices() {
        std::vector<int> devices(gpus().size());
        std::iota(devices.begin(), devices.end(), 0);
        return devices;
    }
    static int last_device() { return static_cast<int>(gpus().size()) - 1; }
    /// Whether two devices may use each other's memory.
    static bool has_peers() { return !PeerMatrix::query().usable_pairs().empty(); }
};

}  // namespace symm
