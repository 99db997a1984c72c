// Handles that travel as POSIX descriptors: export and import. Lab 03 tests them between processes.

#include <fcntl.h>
#include <sys/mman.h>

#include <cstdint>

#include "common/sys/descriptor.hpp"
#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Sharing = Driver;

constexpr auto kPosix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

UniqueFd export_memory(const Memory& memory) {
    int fd = -1;
    EXPECT_OK(cuMemExportToShareableHandle(&fd, memory.handle(), kPosix, 0));
    return UniqueFd(fd);
}

CUresult import(CUmemGenericAllocationHandle* handle, int fd) {
    return cuMemImportFromShareableHandle(
        handle, reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd)), kPosix);
}

// Maps an imported handle and reads it; releases the handle.
std::vector<unsigned char> read_import(CUmemGenericAllocationHandle handle, std::size_t bytes) {
    Range range(bytes);
    EXPECT_OK(cuMemMap(range.base(), bytes, 0, handle, 0));
    EXPECT_OK(give_access(range.base(), bytes));
    auto read = read_bytes(range.base(), bytes);
    EXPECT_OK(cuMemUnmap(range.base(), bytes));
    EXPECT_OK(cuMemRelease(handle));
    return read;
}

// Memory that holds pattern 5 and is mapped nowhere.
struct Written : Memory {
    explicit Written(std::size_t units) : Memory(units) {
        Range range(size());
        range.map(*this, 0, {0});
        write_bytes(range.base(), pattern(size(), 5));
    }
};

TEST_F(Sharing, AnImportIsTheSameMemoryAndOutlivesTheDescriptor) {
    Written memory(1);
    UniqueFd fd = export_memory(memory);
    memory.release();  // the descriptor keeps it
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(import(&handle, fd.get()));
    EXPECT_NE(fcntl(fd.get(), F_GETFD), -1) << "the descriptor is its owner's";
    fd.reset();
    EXPECT_EQ(read_import(handle, memory.size()), pattern(memory.size(), 5));
}

TEST_F(Sharing, AnImportKnowsItsProperties) {
    const int last = device_count() - 1;
    Memory memory(memory_of(last), unit());
    const UniqueFd fd = export_memory(memory);
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(import(&handle, fd.get()));
    CUmemAllocationProp found{};
    EXPECT_OK(cuMemGetAllocationPropertiesFromHandle(&found, handle));
    EXPECT_EQ(found.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    EXPECT_EQ(found.location.id, last);
    EXPECT_OK(cuMemRelease(handle));
}

TEST_F(Sharing, ExportRefusesWhatWasNotAskedForAtCreation) {
    Memory private_memory(memory_of(0, 0), unit());
    int fd = -1;
    EXPECT_RESULT(cuMemExportToShareableHandle(&fd, private_memory.handle(), kPosix, 0),
                  CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_PERMITTED);
    Memory memory(1);
    EXPECT_INVALID(cuMemExportToShareableHandle(&fd, memory.handle(), kPosix, 1));
    EXPECT_INVALID(cuMemExportToShareableHandle(nullptr, memory.handle(), kPosix, 0));
}

TEST_F(Sharing, ImportRefusesWhatIsNoMemory) {
    const UniqueFd null_device(open("/dev/null", O_RDWR | O_CLOEXEC));
    const UniqueFd file(memfd_create("not a GPU's memory", MFD_CLOEXEC));
    CUmemGenericAllocationHandle handle = 0;
    for (const int fd : {null_device.get(), file.get(), -1}) {
        EXPECT_NE(import(&handle, fd), CUDA_SUCCESS);
    }
    Memory memory(1);
    const UniqueFd fd = export_memory(memory);
    EXPECT_INVALID(import(nullptr, fd.get()));
}

}  // namespace
}  // namespace symm::conformance
