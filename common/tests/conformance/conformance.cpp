#include "common/tests/conformance/conformance.hpp"

#include <algorithm>
#include <thread>

#include "common/cuda/check.hpp"

namespace symm::conformance {

testing::AssertionResult is_one_of(CUresult result, std::initializer_list<CUresult> accepted) {
    if (std::find(accepted.begin(), accepted.end(), result) != accepted.end()) {
        return testing::AssertionSuccess();
    }
    auto failure = testing::AssertionFailure() << "returned " << name_of(result) << ", not";
    const char* separator = " ";
    for (CUresult each : accepted) {
        failure << separator << name_of(each);
        separator = " or ";
    }
    return failure << ": ";
}

namespace {

std::size_t granules(std::size_t units, int device) {
    const CUmemAllocationProp properties = memory_of(device);
    std::size_t bytes = 0;
    EXPECT_OK(
        cuMemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    return units * bytes;
}

}  // namespace

Driver::Driver() {
    EXPECT_OK(cuInit(0));
    EXPECT_GE(device_count(), 1);
    EXPECT_OK(cuCtxSetCurrent(primary_context()));
}

Driver::~Driver() {
    CUcontext current = nullptr;
    EXPECT_OK(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, primary_context()) << "the case left another context current";
    EXPECT_OK(cuCtxSynchronize());
}

CUdevice Driver::device(int ordinal) {
    CUdevice device = -1;
    EXPECT_OK(cuDeviceGet(&device, ordinal));
    return device;
}

int Driver::device_count() {
    int count = 0;
    EXPECT_OK(cuDeviceGetCount(&count));
    return count;
}

int Driver::attribute(CUdevice_attribute which, int ordinal) {
    int value = -1;
    EXPECT_OK(cuDeviceGetAttribute(&value, which, device(ordinal)));
    return value;
}

CUcontext Driver::primary_context() {
    // Never released: a real driver takes most of a second to make it.
    static const CUcontext context = [] {
        CUcontext made = nullptr;
        EXPECT_OK(cuDevicePrimaryCtxRetain(&made, device(0)));
        return made;
    }();
    return context;
}

std::size_t Driver::unit() {
    return granules(1, 0);
}

void Driver::in_another_thread(const std::function<void()>& work) {
    std::thread([&] {
        EXPECT_OK(cuCtxSetCurrent(primary_context()));
        work();
    }).join();
}

bool Driver::peers() {
    int can = 0;
    if (device_count() >= 2) {
        EXPECT_OK(cuDeviceCanAccessPeer(&can, device(0), device(1)));
    }
    return can != 0;
}

CUmemAllocationProp memory_of(int device, unsigned long long types) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(types);
    return properties;
}

CUmemAllocationProp memory_of_node(int node) {
    CUmemAllocationProp properties = memory_of(0);
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    properties.location.id = node;
    return properties;
}

CUmemAccessDesc access_for(int device, CUmemAccess_flags flags) {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = flags;
    return access;
}

CUresult give_access(CUdeviceptr at, std::size_t bytes, const CUmemAccessDesc& access) {
    return cuMemSetAccess(at, bytes, &access, 1);
}

Memory::Memory(const CUmemAllocationProp& properties, std::size_t bytes) : bytes_(bytes) {
    EXPECT_OK(cuMemCreate(&handle_, bytes, &properties, 0));
}

Memory::Memory(std::size_t units) : Memory(memory_of(0), granules(units, 0)) {}

Memory::~Memory() {
    release();
}

void Memory::release() {
    if (handle_ != 0) {
        EXPECT_OK(cuMemRelease(handle_));
        handle_ = 0;
    }
}

Range::Range(std::size_t bytes, std::size_t alignment) : bytes_(bytes) {
    EXPECT_OK(cuMemAddressReserve(&base_, bytes, alignment, 0, 0));
}

Range::~Range() {
    for (const Piece& piece : pieces_) {
        EXPECT_OK(cuMemUnmap(base_ + piece.offset, piece.bytes));
    }
    if (base_ != 0) {
        EXPECT_OK(cuMemAddressFree(base_, bytes_));
    }
}

void Range::map(const Memory& memory, std::size_t offset, std::initializer_list<int> devices) {
    ASSERT_OK(cuMemMap(base_ + offset, memory.size(), 0, memory.handle(), 0));
    pieces_.push_back({offset, memory.size()});
    for (int device : devices) {
        EXPECT_OK(give_access(base_ + offset, memory.size(), access_for(device)));
    }
}

void Range::unmap(std::size_t offset) {
    const auto piece = std::find_if(pieces_.begin(), pieces_.end(),
                                    [&](const Piece& each) { return each.offset == offset; });
    ASSERT_NE(piece, pieces_.end());
    EXPECT_OK(cuMemUnmap(base_ + offset, piece->bytes));
    pieces_.erase(piece);
}

Buffer::Buffer(std::size_t units, int device)
    : memory(memory_of(device), granules(units, device)), range(memory.size()) {
    range.map(memory, 0, {device});
}

std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
    std::vector<unsigned char> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
        made[i] = static_cast<unsigned char>((i + std::size_t{seed} * 83) % 251);
    }
    return made;
}

void write_bytes(CUdeviceptr to, const std::vector<unsigned char>& bytes) {
    EXPECT_OK(cuMemcpyHtoD(to, bytes.data(), bytes.size()));
    EXPECT_OK(cuStreamSynchronize(nullptr));  // the copy has only been staged
}

std::vector<unsigned char> read_bytes(CUdeviceptr from, std::size_t bytes) {
    std::vector<unsigned char> read(bytes, 0xEE);
    EXPECT_OK(cuMemcpyDtoH(read.data(), from, bytes));
    return read;
}

void expect_written(CUdeviceptr to, std::size_t bytes, unsigned seed, CUdeviceptr from) {
    write_bytes(to, pattern(bytes, seed));
    EXPECT_EQ(read_bytes(from == 0 ? to : from, bytes), pattern(bytes, seed));
}

}  // namespace symm::conformance
