#include "symm/nccl/nccl.hpp"

#include <dlfcn.h>

#include "common/sys/log.hpp"

namespace symm::drop_in {
namespace {

template <class Function>
Function* find(const char* name) {
    void* found = dlsym(RTLD_NEXT, name);
    if (found == nullptr) {
        void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
        found = library != nullptr ? dlsym(library, name) : nullptr;
    }
    if (found == nullptr) {
        log::error("{} was called, but the program's NCCL has no such function", name);
    }
    return reinterpret_cast<Function*>(found);
}

}  // namespace

#define SYMM_NCCL_AS(symbol, name, parameters, arguments)                \
    Result name parameters {                                             \
        static auto* const function = find<Result parameters>(symbol);   \
        return function != nullptr ? function arguments : kInvalidUsage; \
    }

namespace nccl {
#define SYMM_NCCL_FUNCTION(name, parameters, arguments) \
    SYMM_NCCL_AS("nccl" #name, name, parameters, arguments)
#include "symm/nccl/nccl_functions.inc"

const char* GetLastError(ncclComm* comm) {
    static auto* const function = find<const char*(ncclComm*)>("ncclGetLastError");
    return function != nullptr ? function(comm) : "";
}
}  // namespace nccl

namespace pnccl {
#define SYMM_NCCL_CALLED(name, parameters, arguments) \
    SYMM_NCCL_AS("pnccl" #name, name, parameters, arguments)
#include "symm/nccl/nccl_functions.inc"
}  // namespace pnccl
#undef SYMM_NCCL_AS

}  // namespace symm::drop_in
