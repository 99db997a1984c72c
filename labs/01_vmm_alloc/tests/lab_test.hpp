#pragma once
/// \file
/// Shared by the tests of the memory labs: a fixture that counts what is left behind, and functions
/// that make every driver call of some code fail once.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/inventory.hpp"
#include "common/tests/needs.hpp"

namespace symm {

/// How often each driver function has been called by this process so far. Emulated driver only.
inline std::map<std::string_view, long> calls_so_far() {
    std::map<std::string_view, long> calls;
    for (std::string_view function : emu::kDriverFunctions) {
        calls[function] = emu::calls_made(function);
    }
    return calls;
}

/// One driver call of the code under test (the path): the `number`-th of `function`, from 1.
struct CallOfPath {
    std::string_view function;
    long number = 1;
};

/// All driver calls that `path` makes.
inline std::vector<CallOfPath> calls_of(const std::function<void()>& path) {
    const auto before = calls_so_far();
    path();
    std::vector<CallOfPath> calls;
    for (const auto& [function, count] : calls_so_far()) {
        for (long number = 1; number <= count - before.at(function); ++number) {
            calls.push_back({function, number});
        }
    }
    return calls;
}

/// Whether the call releases or restores something: if it fails in a destructor, that is no error.
inline bool gives_back(std::string_view function) {
    for (const char* part :
         {"Unmap", "Free", "Release", "Close", "Destroy", "Unregister", "CaptureMode"}) {
        if (function.find(part) != std::string_view::npos) {
            return true;
        }
    }
    return false;
}

/// The result that a failing call returns: no code here handles it.
inline constexpr CUresult kInjected = CUDA_ERROR_SYSTEM_NOT_READY;

/// Runs `path` with the given call failing. Expects a CudaError that names the call and carries the
/// result. So the test fails if the path swallows the error, retries or throws something else.
inline void expect_failure(const CallOfPath& call, const std::function<void()>& path) {
    SCOPED_TRACE(fmt::format("failing call {} of {}", call.number, call.function));
    emu::fail_call(call.function, call.number, kInjected);
    try {
        path();
        ADD_FAILURE() << "nothing was thrown";
    } catch (const CudaError& error) {
        EXPECT_EQ(name_of(error.result()), name_of(kInjected));
        EXPECT_NE(std::string_view(error.what()).find(call.function), std::string_view::npos)
            << "the error does not name the call: " << error.what();
    } catch (const std::exception& error) {
        ADD_FAILURE() << "not a CudaError: " << error.what();
    }
    emu::clear_failures();
}

/// Everything that `work`, which must not throw, logs and writes to stderr.
inline std::string logged_by(const std::function<void()>& work) {
    ::testing::internal::CaptureStderr();
    try {
        work();
    } catch (const std::exception& error) {
        ADD_FAILURE() << "the error was thrown, not logged: " << error.what();
    }
    return ::testing::internal::GetCapturedStderr();
}

/// A device's access rights at a mapped address.
inline unsigned long long rights_of(int device, CUdeviceptr at) {
    const CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    unsigned long long flags = 0;
    cu_check(cuMemGetAccess(&flags, &location, at), "cuMemGetAccess");
    return flags;
}

/// Makes every driver call of `make` fail, one per run, and expects each time an error that names
/// the call, and nothing left behind. `make` returns the owner of what it made, so that the calls
/// that destroy it are not counted. Calls for which `may_fail` is false do not fail. Returns the
/// number of the others.
inline std::size_t fail_each_call(
    const std::function<std::shared_ptr<void>()>& make,
    const std::function<bool(const CallOfPath&)>& may_fail = [](const CallOfPath&) {
        return true;
    }) {
    std::shared_ptr<void> kept;
    std::vector<CallOfPath> calls = calls_of([&] { kept = make(); });
    std::erase_if(calls, [&](const CallOfPath& call) { return !may_fail(call); });
    kept.reset();
    for (const CallOfPath& call : calls) {
        const emu::Inventory before = emu::inventory();
        expect_failure(call, [&] { kept = make(); });
        kept.reset();
        EXPECT_EQ(emu::inventory(), before)
            << "call " << call.number << " of " << call.function << " failed and left this behind";
    }
    return calls.size();
}

/// Makes device 0's primary context current. On the emulated driver, expects a case to leave
/// nothing behind.
class LabTest : public ::testing::Test {
protected:
    void SetUp() override {
        device_ = std::make_unique<Device>(0);
        if (is_emulated()) {
            before_ = emu::inventory();
        } else {
            // Creating a real context takes most of a second: kept until the program ends.
            static const Device kept(0);
        }
    }
    void TearDown() override {
        if (is_emulated()) {
            emu::clear_failures();
            EXPECT_EQ(emu::inventory(), before_) << "the case left something behind";
        }
    }

    /// Writes words unique to offset and seed over [at, at + bytes), or checks that they are there.
    static void fill(CUdeviceptr at, std::size_t bytes, unsigned seed) {
        std::vector<unsigned> words(bytes / 4);
        std::iota(words.begin(), words.end(), seed * 0x1000000u);
        copy_to_device(at, words.data(), bytes);
    }
    static bool holds(CUdeviceptr at, std::size_t bytes, unsigned seed) {
        std::vector<unsigned> words(bytes / 4);
        copy_to_host(words.data(), at, bytes);
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (words[i] != seed * 0x1000000u + i) {
                return false;
            }
        }
        return true;
    }

    std::unique_ptr<Device> device_;
    emu::Inventory before_;
};

}  // namespace symm
