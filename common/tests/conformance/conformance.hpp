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
#include <functional>
#include <initializer_list>
#include <vector>

#include "common/tests/needs.hpp"

namespace symm::conformance {

/// Whether `result` is one of `accepted`; says both by name where it is not.
testing::AssertionResult is_one_of(CUresult result, std::initializer_list<CUresult> accepted);

/// The call answers with one of the given results.
#define EXPECT_RESULT(call, ...) \
    EXPECT_TRUE(symm::conformance::is_one_of((call), {__VA_ARGS__})) << #call
#define ASSERT_RESULT(call, ...) \
    ASSERT_TRUE(symm::conformance::is_one_of((call), {__VA_ARGS__})) << #call
#define EXPECT_INVALID(call) EXPECT_RESULT(call, CUDA_ERROR_INVALID_VALUE)
#define EXPECT_OK(call) EXPECT_RESULT(call, CUDA_SUCCESS)
#define ASSERT_OK(call) ASSERT_RESULT(call, CUDA_SUCCESS)

/// An address that no driver reserves, and a device that no machine has.
inline constexpr CUdeviceptr kNowhere = std::size_t{64} << 20;
inline constexpr CUdevice kNoDevice = 9999;

/// Every case starts on a thread where device 0's primary context is current, and leaves it so.
class Driver : public testing::Test {
protected:
    Driver();
    ~Driver() override;

    static CUdevice device(int ordinal = 0);
    static int device_count();
    static int attribute(CUdevice_attribute which, int ordinal = 0);
    /// Device 0's primary context, retained for as long as the program runs.
    static CUcontext primary_context();
    /// The granularity of device 0's memory.
    static std::size_t unit();
    /// Whether devices 0 and 1 are peers.
    static bool peers();
    /// The NUMA node near device 0; negative if there is none.
    static int node() { return attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID); }
    /// Runs `work` in another thread, with the primary context current there.
    static void in_another_thread(const std::function<void()>& work);
};

/// Properties for memory of a device, with a POSIX descriptor unless `types` says otherwise.
CUmemAllocationProp memory_of(int device,
                              unsigned long long types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
/// The same for host memory of a NUMA node.
CUmemAllocationProp memory_of_node(int node);
/// Access for a device: reading and writing, unless `flags` says otherwise.
CUmemAccessDesc access_for(int device,
                           CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

/// Gives access to mapped memory: device 0, unless `access` says otherwise.
CUresult give_access(CUdeviceptr at, std::size_t bytes,
                     const CUmemAccessDesc& access = access_for(0));

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

/// Memory from cuMemAlloc, freed at the end of the case.
struct Allocation {
    explicit Allocation(std::size_t bytes) { EXPECT_OK(cuMemAlloc(&base, bytes)); }
    ~Allocation() { EXPECT_OK(cuMemFree(base)); }
    Allocation(const Allocation&) = delete;
    Allocation& operator=(const Allocation&) = delete;
    CUdeviceptr base = 0;
};

/// Memory from cuMemHostAlloc, freed at the end of the case.
struct Pinned {
    explicit Pinned(std::size_t bytes, unsigned flags = 0) {
        EXPECT_OK(cuMemHostAlloc(&data, bytes, flags));
    }
    ~Pinned() { EXPECT_OK(cuMemFreeHost(data)); }
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;
    CUdeviceptr base() const { return reinterpret_cast<CUdeviceptr>(data); }
    void* data = nullptr;
};

/// A non-blocking stream, destroyed at the end of the case.
struct Stream {
    Stream() { EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)); }
    ~Stream() { EXPECT_OK(cuStreamDestroy(stream)); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    operator CUstream() const { return stream; }
    CUstream stream = nullptr;
};

/// An event, destroyed at the end of the case.
struct Event {
    explicit Event(unsigned flags = CU_EVENT_DEFAULT) { EXPECT_OK(cuEventCreate(&event, flags)); }
    ~Event() { EXPECT_OK(cuEventDestroy(event)); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    operator CUevent() const { return event; }
    CUevent event = nullptr;
};

/// `bytes` equal bytes.
inline std::vector<unsigned char> filled(std::size_t bytes, unsigned char value) {
    return std::vector<unsigned char>(bytes, value);
}
/// Bytes that depend on position and seed. They repeat after 251, which is prime, so that data
/// shifted by a power of two is found.
std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed);
/// Copies to the device and back with the synchronous calls; EXPECTs success.
void write_bytes(CUdeviceptr to, const std::vector<unsigned char>& bytes);
std::vector<unsigned char> read_bytes(CUdeviceptr from, std::size_t bytes);
/// Expects that what is written to `to` can be read at `from`, which shows the same memory.
void expect_written(CUdeviceptr to, std::size_t bytes, unsigned seed, CUdeviceptr from = 0);

}  // namespace symm::conformance
