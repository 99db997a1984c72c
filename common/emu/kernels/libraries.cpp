// Kernels that are found by name: in a library loaded from PTX, or among the program's host twins.
// A kernel's handle is also that of its function in every context; a GPU has one per context.

#include <elf.h>

#include <cstring>

#include "common/emu/emulator.hpp"
#include "common/emu/kernels/host_twin.hpp"
#include "common/emu/kernels/launch.hpp"
#include "common/emu/kernels/ptx.hpp"
#include "common/emu/log.hpp"
#include "common/emu/streams/contexts.hpp"

namespace symm::emu {
namespace {

// The program's host twins by the kernel's name, each with the function of the kernel that is
// linked into the program. The emulator's mutex guards them.
struct Twin {
    HostTwin code;
    CUfunction function = nullptr;
};
std::map<std::string, Twin>& twins() {
    static auto& kept = *new std::map<std::string, Twin>;
    return kept;
}

// A cubin, which is an ELF file, or a fat binary, by their first bytes.
bool is_machine_code(const char* code) {
    constexpr char kFatBinary[] = "\x50\xed\x55\xba";
    return std::strncmp(code, ELFMAG, SELFMAG) == 0 || std::strncmp(code, kFatBinary, 4) == 0;
}

}  // namespace

void add_host_twin(const std::string& name, HostTwin code) {
    const Changing e;
    Twin& twin = twins()[name];
    twin.code = std::move(code);
    if (twin.function == nullptr) {
        twin.function = e->keep(e->functions, name);
    }
}

CUresult get_function_of_twin(CUfunction* function, const std::string& name) {
    return answer([&] { *function = find_in(twins(), name, CUDA_ERROR_NOT_FOUND).function; });
}

void cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned int,
                       CUlibraryOption*, void**, unsigned int) {
    refuse_if(library == nullptr || code == nullptr);
    const char* text = static_cast<const char*>(code);
    if (is_machine_code(text)) {
        say("cuLibraryLoadData: this is GPU machine code; an emulated GPU accepts only PTX");
        refuse(CUDA_ERROR_NO_BINARY_FOR_GPU);
    }
    const std::vector<std::string> names = entries_of(text);
    const Changing e;
    NamedKernels kernels;
    for (const std::string& name : names) {
        kernels[name] = e->keep(e->functions, name);
    }
    *library = e->keep(e->libraries, std::move(kernels));
}

void cuLibraryUnload(CUlibrary library) {
    const Changing e;
    const auto found = e->libraries.find(library);
    refuse_if(found == e->libraries.end(), CUDA_ERROR_INVALID_HANDLE);
    for (const auto& [name, function] : found->second) {
        e->functions.erase(function);
    }
    e->libraries.erase(found);
}

void cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    refuse_if(kernel == nullptr || name == nullptr);
    const Reading e;
    const auto kernels = e->libraries.find(library);
    refuse_if(kernels == e->libraries.end(), CUDA_ERROR_INVALID_HANDLE);
    const auto found = kernels->second.find(name);
    refuse_if(found == kernels->second.end(), CUDA_ERROR_NOT_FOUND);
    if (!twins().contains(name)) {
        say("kernel {} has no host twin: emulated GPUs run host code, not PTX (give it one with "
            "add_host_twin(), common/emu/kernels/host_twin.hpp)",
            name);
        refuse(CUDA_ERROR_NO_BINARY_FOR_GPU);
    }
    *kernel = reinterpret_cast<CUkernel>(found->second);
}

void cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    refuse_if(function == nullptr);
    current_context();
    *function = reinterpret_cast<CUfunction>(kernel);
    find_in(emulator().functions, *function);
}

void cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                    unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                    unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                    void** parameters, void** extra) {
    const std::string name = find_in(emulator().functions, function);
    refuse_if(extra != nullptr);
    queue_kernel(stream, {name, dim3(grid_x, grid_y, grid_z), dim3(block_x, block_y, block_z),
                          shared_bytes, find_in(twins(), name).code(parameters)});
}

namespace {

// An attribute's default changes nothing.
bool is_dependent_in(const CUlaunchConfig& config) {
    bool found = false;
    refuse_if(config.numAttrs > 0 && config.attrs == nullptr);
    for (unsigned i = 0; i < config.numAttrs; ++i) {
        const CUlaunchAttribute& attribute = config.attrs[i];
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
            found = attribute.value.programmaticStreamSerializationAllowed != 0;
        } else if (attribute.id != CU_LAUNCH_ATTRIBUTE_IGNORE) {
            say("cuLaunchKernelEx: attribute {} is not emulated, only programmatic stream "
                "serialization is",
                static_cast<int>(attribute.id));
            refuse(CUDA_ERROR_NOT_SUPPORTED);
        }
    }
    return found;
}

}  // namespace

void cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                      void** extra) {
    refuse_if(config == nullptr);
    const std::string name = find_in(emulator().functions, function);
    refuse_if(extra != nullptr);
    queue_kernel(config->hStream, {name, dim3(config->gridDimX, config->gridDimY, config->gridDimZ),
                                   dim3(config->blockDimX, config->blockDimY, config->blockDimZ),
                                   config->sharedMemBytes, find_in(twins(), name).code(parameters),
                                   is_dependent_in(*config)});
}

}  // namespace symm::emu
