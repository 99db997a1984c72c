// The check itself: it must find every error that an AllReduce could make.

#include "labs/06_allreduce/communicator/result_check.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"

namespace symm {
namespace {

/// One rank's sum is its input. Spoils it, and returns the check's error.
template <class Spoil>
std::string complaint(DataType type, std::size_t count, const Spoil& spoil) {
    std::string text;
    run_ranks({1, RankMode::kThread, {}}, [&](Rank& rank) {
        Communicator communicator(rank);
        const CUdeviceptr buffer = communicator.allocate(count * size_of(type));
        Verifier verifier(0, 1);
        const Stream stream;
        verifier.fill(stream, {type}, buffer, count);
        stream.synchronize();
        EXPECT_NO_THROW(verifier.check(stream, {type}, buffer, count));
        spoil(buffer, stream, verifier);
        try {
            verifier.check(stream, {type}, buffer, count);
        } catch (const std::runtime_error& error) {
            text = error.what();
        }
    });
    return text;
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
