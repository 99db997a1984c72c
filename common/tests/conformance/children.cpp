// The suite's work in other processes, and how it starts them: the program runs itself again.

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>

#include "common/sys/descriptor.hpp"
#include "common/sys/process.hpp"
#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {

int run_child(const std::string& name, const std::string& argument, int fd) {
    // A duplicate that, unlike the driver's descriptors, stays open after exec.
    const UniqueFd inherited(fd >= 0 ? fcntl(fd, F_DUPFD, 3) : -1);
    Command command;
    command.arguments = {"/proc/self/exe", "--child=" + name,
                         argument + ":" + std::to_string(inherited.get())};
    Process child(command);
    const auto status = child.wait(Deadline::standard());
    return status && status->signal == 0 ? status->code : -1;
}

namespace {

// Reads pattern 5, writes pattern 6.
void exchange_patterns(CUdeviceptr at, std::size_t bytes) {
    EXPECT_EQ(read_bytes(at, bytes), pattern(bytes, 5));
    write_bytes(at, pattern(bytes, 6));
}

void map_child(std::size_t bytes, int fd) {
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(cuMemImportFromShareableHandle(
        &handle, reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd)),
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    int again = -1;  // only the process that made memory can export it
    EXPECT_INVALID(
        cuMemExportToShareableHandle(&again, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    Range range(bytes);
    ASSERT_OK(cuMemMap(range.base(), bytes, 0, handle, 0));
    EXPECT_OK(give_access(range.base(), bytes));
    exchange_patterns(range.base(), bytes);
    EXPECT_OK(cuMemUnmap(range.base(), bytes));
    EXPECT_OK(cuMemRelease(handle));
}

void ipc_child(const std::string& hexadecimal, std::size_t bytes) {
    CUipcMemHandle handle{};
    for (std::size_t i = 0; i < sizeof handle.reserved; ++i) {
        handle.reserved[i] =
            static_cast<char>(std::stoi(hexadecimal.substr(2 * i, 2), nullptr, 16));
    }
    CUdeviceptr base = 0;
    CUdeviceptr again = 0;
    ASSERT_OK(cuIpcOpenMemHandle(&base, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    EXPECT_OK(cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    EXPECT_EQ(again, base);
    EXPECT_OK(cuIpcCloseMemHandle(again));  // the second opening needs a close too
    exchange_patterns(base, bytes);
    EXPECT_OK(cuIpcCloseMemHandle(base));
}

// The main() of a child. `argument` ends with `:` and the number of the descriptor.
void run_as_child(const std::string& name, const std::string& argument) {
    CUcontext context = nullptr;
    ASSERT_OK(cuInit(0));
    ASSERT_OK(cuDevicePrimaryCtxRetain(&context, 0));
    ASSERT_OK(cuCtxSetCurrent(context));
    const std::size_t last = argument.rfind(':');
    const std::string rest = argument.substr(0, last);
    if (name == "map") {
        map_child(std::stoull(rest), std::stoi(argument.substr(last + 1)));
    } else {
        const std::size_t colon = rest.find(':');
        ipc_child(rest.substr(0, colon), std::stoull(rest.substr(colon + 1)));
    }
    EXPECT_OK(cuDevicePrimaryCtxRelease(0));
}

}  // namespace
}  // namespace symm::conformance

int main(int argc, char** argv) {
    const std::string child = "--child=";
    if (argc == 3 && std::string(argv[1]).starts_with(child)) {
        symm::conformance::run_as_child(argv[1] + child.size(), argv[2]);
        return testing::UnitTest::GetInstance()->Failed() ? 1 : 0;
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
