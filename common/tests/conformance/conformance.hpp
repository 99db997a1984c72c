#pragma once
/// \file
/// Shared by the cases of the driver conformance suite.
///
/// The suite asks a driver for what the CUDA Driver API manual promises, and for what a real driver
/// was seen to answer where the manual leaves it open. It calls the driver by its real names, so
/// the same program runs on the real driver and on the emulated one, and both must pass every case.
/// Where real drivers differ from each other, a case names all the answers it takes.

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

namespace symm::conformance {

/// Whether `result` is one of `accepted`; says both by name where it is not.
testing::AssertionResult is_one_of(CUresult result, std::initializer_list<CUresult> accepted);

/// The call answers with one of the given results.
#define EXPECT_RESULT(call, ...) \
    EXPECT_TRUE(symm::conformance::is_one_of((call), {__VA_ARGS__})) << #call
#define ASSERT_RESULT(call, ...) \
    ASSERT_TRUE(symm::conformance::is_one_of((call), {__VA_ARGS__})) << #call
#define EXPECT_OK(call) EXPECT_RESULT(call, CUDA_SUCCESS)
#define ASSERT_OK(call) ASSERT_RESULT(call, CUDA_SUCCESS)

/// Every case starts on a thread where device 0's primary context is current, and leaves it so.
class Driver : public testing::Test {
protected:
    void SetUp() override;
    void TearDown() override;

    static CUdevice device(int ordinal = 0);
    static int device_count();
    static int attribute(CUdevice_attribute which, int ordinal = 0);
    /// Device 0's primary context, retained for as long as the program runs.
    static CUcontext primary_context();
    /// The granularity of device 0's memory.
    static std::size_t unit();
    /// Whether devices 0 and 1 are peers. A case that needs that calls GTEST_SKIP() where not.
    static bool peers();
};

/// Properties for memory of a device, with a POSIX descriptor unless `types` says otherwise.
CUmemAllocationProp memory_of(int device,
                              unsigned long long types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
/// Access for a device: reading and writing, unless `flags` says otherwise.
CUmemAccessDesc access_for(int device,
                           CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

/// A handle that is released at the end of the case.
class Memory {
public:
    Memory(const CUmemAllocationProp& properties, std::size_t bytes);
    /// `units` granules of device 0.
    explicit Memory(std::size_t units);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    CUmemGenericAllocationHandle handle() const { return handle_; }
    std::size_t size() const { return bytes_; }
    /// Releases the handle now.
    void release();

private:
    CUmemGenericAllocationHandle handle_ = 0;
    std::size_t bytes_ = 0;
};

/// A reservation that is freed at the end of the case, after what map() has mapped in it.
class Range {
public:
    explicit Range(std::size_t bytes, std::size_t alignment = 0);
    ~Range();
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;

    CUdeviceptr base() const { return base_; }
    std::size_t size() const { return bytes_; }
    /// Maps all of `memory` at `offset` and gives `devices` access to it.
    void map(const Memory& memory, std::size_t offset = 0, std::initializer_list<int> devices = {});
    /// Unmaps what map() put at `offset`.
    void unmap(std::size_t offset = 0);

private:
    struct Piece {
        std::size_t offset;
        std::size_t bytes;
    };
    CUdeviceptr base_ = 0;
    std::size_t bytes_ = 0;
    std::vector<Piece> pieces_;
};

/// Memory of one device that this device may use, made with the calls of virtual memory management.
struct Buffer {
    explicit Buffer(std::size_t units, int device = 0);

    Memory memory;
    Range range;
    CUdeviceptr base() const { return range.base(); }
    std::size_t size() const { return range.size(); }
};

/// Bytes that depend on position and seed. They repeat after 251, which is prime, so that data
/// shifted by a power of two is found.
std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed);
/// Copies to the device and back with the synchronous calls; EXPECTs success.
void write_bytes(CUdeviceptr to, const std::vector<unsigned char>& bytes);
std::vector<unsigned char> read_bytes(CUdeviceptr from, std::size_t bytes);

/// Runs this program again as child `name` (see children.cpp) with `argument`. The child inherits a
/// duplicate of the descriptor `fd`, unless that is -1. Returns its exit status; -1 where a signal
/// ended it or it took too long.
int run_child(const std::string& name, const std::string& argument, int fd = -1);
/// The main() of such a child. `argument` ends with `:` and the number of the descriptor.
/// Returns the exit status: 0 if nothing failed.
int child_main(const std::string& name, const std::string& argument);

}  // namespace symm::conformance
