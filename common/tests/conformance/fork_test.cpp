// A child of fork() cannot use the driver that its parent has initialised.

#include <cstdlib>

#include "common/tests/conformance/conformance.hpp"
#include "common/tests/forked.hpp"

namespace symm::conformance {
namespace {

using Forked = Driver;

TEST_F(Forked, AChildIsNotInitialised) {
    const Buffer buffer(1);
    const CUcontext primary = primary_context();
    const CUdevice first = device();
    const std::size_t bytes = unit();
    EXPECT_EQ(testing::end_of_child([&] {
                  int count = 0;
                  CUcontext context = nullptr;
                  CUdeviceptr memory = 0;
                  const CUresult results[] = {cuInit(0),
                                              cuDeviceGetCount(&count),
                                              cuCtxGetCurrent(&context),
                                              cuCtxSetCurrent(primary),
                                              cuCtxSynchronize(),
                                              cuDevicePrimaryCtxRetain(&context, first),
                                              cuDevicePrimaryCtxRelease(first),
                                              cuMemAlloc(&memory, 64),
                                              cuMemUnmap(buffer.base(), bytes)};
                  for (std::size_t i = 0; i < std::size(results); ++i) {
                      testing::require(
                          results[i] == CUDA_ERROR_NOT_INITIALIZED,
                          "call " + std::to_string(i) + " answers " + std::to_string(results[i]));
                  }
                  std::_Exit(0);  // a real driver's own exit handlers may crash there
              }),
              "exited with code 0");
    expect_written(buffer.base(), 1000, 1);
}

}  // namespace
}  // namespace symm::conformance
