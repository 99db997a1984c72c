// The check itself: it must find every error that an AllReduce could make.

#include "labs/05_device_prims/reduction/result_check.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "common/cuda/copy.hpp"
#include "common/cuda/device.hpp"
#include "common/tests/text_thrown_by.hpp"

namespace symm {
namespace {

/// One rank's sum is its input. Spoils it, and returns the check's error.
template <class Spoil>
std::string complaint(DataType type, std::size_t count, const Spoil& spoil) {
    const Device device(0);
    const DeviceMemory memory(count * size_of(type));
    const CUdeviceptr buffer = memory.address();
    Verifier verifier(0, 1);
    const Stream stream;
    verifier.fill(stream, {type}, buffer, count);
    stream.synchronize();
    EXPECT_NO_THROW(verifier.check(stream, {type}, buffer, count));
    spoil(buffer, stream, verifier);
    return testing::text_thrown_by([&] { verifier.check(stream, {type}, buffer, count); });
}

TEST(Verifier, FindsOneChangedElement) {
    const std::string text =
        complaint(DataType::kFloat, 1001, [](CUdeviceptr buffer, const auto&, auto&) {
            float value = 0;
            copy_to_host(&value, buffer + 4 * 777, 4);
            value += 1;
            copy_to_device(buffer + 4 * 777, &value, 4);
        });
    EXPECT_NE(text.find("1 of 1001 elements are wrong, element 777"), std::string::npos) << text;
}

TEST(Verifier, FindsPoisonThatNobodyOverwrote) {
    for (const DataType type : kDataTypes) {
        const std::string text =
            complaint(type, 100, [&](CUdeviceptr buffer, const Stream& stream, auto&) {
                Verifier::poison(stream, buffer + 50 * size_of(type), 3 * size_of(type));
            });
        EXPECT_NE(text.find("3 of 100 elements are wrong"), std::string::npos) << text;
    }
}

TEST(Verifier, FindsTheResultOfAnEarlierCall) {
    const std::string text = complaint(
        DataType::kBfloat16, 64, [](CUdeviceptr buffer, const Stream& stream, Verifier& verifier) {
            std::vector<std::uint16_t> old(64);
            copy_to_host(old.data(), buffer, 128);
            verifier.fill(stream, {DataType::kBfloat16}, buffer, 64);
            stream.synchronize();
            copy_to_device(buffer, old.data(), 128);
        });
    EXPECT_NE(text.find("elements are wrong"), std::string::npos) << text;
}

}  // namespace
}  // namespace symm
