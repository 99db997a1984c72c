// Kernels that are found by name: in a library loaded from PTX, or among the program's host twins.
// A kernel's handle is also that of its function in every context; a GPU has one per context.

#include <elf.h>

#include <cstring>
#include <mutex>

#include "common/emu/contexts.hpp"
#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/emu/launch.hpp"
#include "common/emu/log.hpp"
#include "common/emu/ptx.hpp"

namespace symm::emu {
namespace {

// The caller holds the mutex.
CUfunction new_function(const std::string& name) {
    Emulator& e = emulator();
    const auto function = e.new_handle_as<CUfunction>();
    e.functions[function] = std::make_shared<const std::string>(name);
    return function;
}

// A cubin, which is an ELF file, or a fat binary, by their first bytes.
bool is_machine_code(const char* code) {
    constexpr char kFatBinary[] = "\x50\xed\x55\xba";
    return std::strncmp(code, ELFMAG, SELFMAG) == 0 || std::strncmp(code, kFatBinary, 4) == 0;
}

}  // namespace

void add_host_twin(const std::string& name, HostTwin twin) {
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    e.twins[name] = twin;
    if (!e.linked.contains(name)) {
        e.linked[name] = new_function(name);
    }
}

CUresult get_function_of_twin(CUfunction* function, const std::string& name) {
    *function = find_in(emulator().linked, name);
    return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                           unsigned int, CUlibraryOption*, void**, unsigned int) {
    SYMM_EMU_ENTER(cuLibraryLoadData);
    if (library == nullptr || code == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const char* text = static_cast<const char*>(code);
    if (is_machine_code(text)) {
        say("cuLibraryLoadData: this is GPU machine code; an emulated GPU accepts only PTX");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    std::vector<std::string> names;
    SYMM_EMU_TRY(entries_of(text, names));
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    NamedKernels kernels;
    for (const std::string& name : names) {
        kernels[name] = new_function(name);
    }
    *library = e.new_handle_as<CUlibrary>();
    e.libraries[*library] = std::make_shared<const NamedKernels>(std::move(kernels));
    return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library) {
    SYMM_EMU_ENTER(cuLibraryUnload);
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    const auto found = e.libraries.find(library);
    if (found == e.libraries.end()) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    for (const auto& [name, function] : *found->second) {
        e.functions.erase(function);
    }
    e.libraries.erase(found);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    SYMM_EMU_ENTER(cuLibraryGetKernel);
    if (kernel == nullptr || name == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto kernels = find_in(emulator().libraries, library);
    if (kernels == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const auto found = kernels->find(name);
    if (found == kernels->end()) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (find_in(emulator().twins, name) == nullptr) {
        say("kernel {} has no host twin: emulated GPUs run host code, not PTX (give it one with "
            "add_host_twin(), common/emu/host_twin.hpp)",
            name);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    *kernel = reinterpret_cast<CUkernel>(found->second);
    return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    SYMM_EMU_ENTER(cuKernelGetFunction);
    if (function == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context));
    const auto same = reinterpret_cast<CUfunction>(kernel);
    if (find_in(emulator().functions, same) == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *function = same;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void** parameters, void** extra) {
    const auto name = find_in(emulator().functions, function);
    if (name == nullptr || extra != nullptr) {
        SYMM_EMU_ENTER(cuLaunchKernel);  // else launch_kernel() counts the call
        return name == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    }
    const HostTwin twin = find_in(emulator().twins, *name);
    return launch_kernel(stream, {*name, dim3(grid_x, grid_y, grid_z),
                                  dim3(block_x, block_y, block_z), shared_bytes, twin(parameters)});
}

}  // namespace symm::emu
