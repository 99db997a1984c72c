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

// Reads pattern 5, writes pattern 6. Each failure has its own code.
int exchange_patterns(CUdeviceptr at, std::size_t bytes) {
    std::vector<unsigned char> read(bytes);
    if (cuMemcpyDtoH(read.data(), at, bytes) != CUDA_SUCCESS) {
        return 20;
    }
    if (read != pattern(bytes, 5)) {
        return 21;
    }
    const auto answer = pattern(bytes, 6);
    return cuMemcpyHtoD(at, answer.data(), bytes) == CUDA_SUCCESS &&
                   cuStreamSynchronize(nullptr) == CUDA_SUCCESS
               ? 0
               : 22;
}

int map_child(std::size_t bytes, int fd) {
    CUmemGenericAllocationHandle handle = 0;
    if (cuMemImportFromShareableHandle(&handle,
                                       reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd)),
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS) {
        return 10;
    }
    close(fd);
    int again = -1;
    if (cuMemExportToShareableHandle(&again, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) !=
        CUDA_ERROR_INVALID_VALUE) {
        return 13;  // only the process that made memory can export it
    }
    CUdeviceptr base = 0;
    const CUmemAccessDesc access = access_for(0);
    if (cuMemAddressReserve(&base, bytes, 0, 0, 0) != CUDA_SUCCESS ||
        cuMemMap(base, bytes, 0, handle, 0) != CUDA_SUCCESS ||
        cuMemSetAccess(base, bytes, &access, 1) != CUDA_SUCCESS) {
        return 11;
    }
    if (const int failed = exchange_patterns(base, bytes); failed != 0) {
        return failed;
    }
    if (cuMemUnmap(base, bytes) != CUDA_SUCCESS || cuMemAddressFree(base, bytes) != CUDA_SUCCESS ||
        cuMemRelease(handle) != CUDA_SUCCESS) {
        return 12;
    }
    return 0;
}

int ipc_child(const std::string& hexadecimal, std::size_t bytes) {
    CUipcMemHandle handle{};
    for (std::size_t i = 0; i < sizeof handle.reserved; ++i) {
        handle.reserved[i] =
            static_cast<char>(std::stoi(hexadecimal.substr(2 * i, 2), nullptr, 16));
    }
    CUdeviceptr base = 0;
    if (cuIpcOpenMemHandle(&base, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS) {
        return 31;
    }
    CUdeviceptr again = 0;
    if (cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS ||
        again != base || cuIpcCloseMemHandle(again) != CUDA_SUCCESS) {
        return 32;  // same address; the second opening needs a close too
    }
    if (const int failed = exchange_patterns(base, bytes); failed != 0) {
        return failed;
    }
    return cuIpcCloseMemHandle(base) == CUDA_SUCCESS ? 0 : 33;
}

}  // namespace

int child_main(const std::string& name, const std::string& argument) {
    CUcontext context = nullptr;
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cuCtxSetCurrent(context) != CUDA_SUCCESS) {
        return 2;
    }
    const std::size_t last = argument.rfind(':');
    const int fd = std::stoi(argument.substr(last + 1));
    const std::string rest = argument.substr(0, last);
    int status = 3;
    if (name == "map") {
        status = map_child(std::stoull(rest), fd);
    } else if (name == "ipc") {
        const std::size_t colon = rest.find(':');
        status = ipc_child(rest.substr(0, colon), std::stoull(rest.substr(colon + 1)));
    }
    return cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS ? status : 4;
}

}  // namespace symm::conformance

int main(int argc, char** argv) {
    const std::string child = "--child=";
    if (argc == 3 && child.compare(0, child.size(), argv[1], child.size()) == 0) {
        return symm::conformance::child_main(argv[1] + child.size(), argv[2]);
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
