// The open task: tensors are written in their first step, and read in their last.

#include <fmt/core.h>

#include "labs/01_vmm_alloc/few_granules.hpp"

#include "common/cuda/copy.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"

namespace symm {
namespace {

using FewGranules = LabTest;

TEST_F(FewGranules, HoldEachTensorWhileItExists) {
    std::size_t granules = 0;
    for (std::vector<Tensor> tensors : std::vector<std::vector<Tensor>>{
             {{1, 2, 3}, {7, 2, 2}, {5, 1, 4}, {4, 1, 1}, {7, 5, 5}, {5, 4, 5}, {5, 0, 1}},
             {{7, 4, 4}, {7, 2, 3}, {3, 4, 5}, {6, 3, 5}, {5, 5, 5}, {4, 5, 5}, {5, 0, 2}}}) {
        for (Tensor& tensor : tensors) {
            tensor.bytes = (tensor.bytes << 20) - 300;
        }
        const std::vector<std::size_t> offsets = place(std::vector(tensors));  // a copy of its own
        ASSERT_EQ(offsets.size(), tensors.size());
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            ASSERT_EQ(offsets[i] % 512, 0u) << "the offset of tensor " << i;
            bytes = std::max(bytes, offsets[i] + tensors[i].bytes);
        }
        const DeviceBuffer buffer(0, bytes);
        granules += buffer.size() / granularity(device_memory(0));
        for (int step = 0; step < 6; ++step) {
            for (std::size_t i = 0; i < tensors.size(); ++i) {
                if (tensors[i].first == step) {
                    symm::fill(buffer.base() + offsets[i], static_cast<unsigned char>(i),
                               tensors[i].bytes);
                }
            }
            for (std::size_t i = 0; i < tensors.size(); ++i) {
                if (tensors[i].last == step) {
                    std::vector<char> seen(tensors[i].bytes);
                    copy_to_host(seen.data(), buffer.base() + offsets[i], seen.size());
                    EXPECT_TRUE(seen == std::vector(seen.size(), static_cast<char>(i)))
                        << "bytes of tensor " << i << " are another's in its last step, " << step;
                }
            }
        }
    }
    fmt::print("score: {}\n", granules);
}

}  // namespace
}  // namespace symm
