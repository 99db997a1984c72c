#include "tools/trace/arguments.hpp"
#include "common/sys/bytes.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "common/cuda/cuda_error.hpp"
#include "common/driver/symbol_name.hpp"

namespace symm::trace {
namespace {

/// `CUdeviceptr * base, size_t* size` gives `CUdeviceptr*` and `size_t*`.
std::vector<std::string> types_in(std::string_view parameters) {
    std::vector<std::string> types(1);
    for (const char c : parameters.substr(1, parameters.size() - 2)) {
        if (c == ',') {
            types.emplace_back();
        } else if (c == '*' && types.back().ends_with(' ')) {
            types.back().back() = '*';
        } else if (c != ' ' || !types.back().empty()) {
            types.back() += c;
        }
    }
    for (std::string& type : types) {  // without the parameter's name
        type.resize(type.find_last_of("* ") + 1);
        if (type.ends_with(' ')) {
            type.pop_back();
        }
    }
    return types;
}

template <class... Types>
std::vector<Parameter> parameters_from(std::string_view text, CUresult (*)(Types...)) {
    const std::vector<std::string> types = types_in(text);
    std::vector<Parameter> parameters;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): many are pointers
    (parameters.push_back({types[parameters.size()], sizeof(Types), alignof(Types)}), ...);
    return parameters;
}

using Functions = std::unordered_map<std::string_view, std::vector<Parameter>>;

const Functions& functions() {
#define SYMM_DRIVER_FUNCTION(name, parameters, arguments) \
    {SYMM_SYMBOL_NAME(name),                              \
     parameters_from(#parameters, static_cast<CUresult(*) parameters>(nullptr))},
    static const Functions all = {
#include "common/driver/functions.inc"
#include "tools/trace/functions_of_nccl.inc"
    };
#undef SYMM_DRIVER_FUNCTION
    return all;
}

template <class T>
T value(const void* slot) {
    T read;
    std::memcpy(&read, slot, sizeof read);  // NOLINT(bugprone-sizeof-expression): or a pointer
    return read;
}

std::string number(std::uint64_t n) {
    return n >= 1024 && n % 1024 == 0 ? format_bytes(n) : std::to_string(n);
}

std::string handle_types(int types) {
    std::string text;
    for (const auto& [bit, name] : {std::pair{CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, "fd"},
                                    std::pair{CU_MEM_HANDLE_TYPE_WIN32, "win32"},
                                    std::pair{CU_MEM_HANDLE_TYPE_FABRIC, "fabric"}}) {
        if ((types & bit) != 0) {
            text += fmt::format("{}{}", text.empty() ? "" : "|", name);
        }
    }
    return text.empty() ? "no handles" : text;
}

std::string location(const CUmemLocation& place) {
    switch (place.type) {
        case CU_MEM_LOCATION_TYPE_DEVICE:
            return fmt::format("device {}", place.id);
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:
            return fmt::format("host node {}", place.id);
        default:
            return fmt::format("place {}:{}", static_cast<int>(place.type), place.id);
    }
}

std::string properties(const CUmemAllocationProp& p) {
    return fmt::format("{{{}, {}{}}}", location(p.location), handle_types(p.requestedHandleTypes),
                       p.allocFlags.gpuDirectRDMACapable != 0 ? ", rdma" : "");
}

std::string access(const CUmemAccessDesc* descriptors, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        const auto flags = descriptors[i].flags;
        text += fmt::format("{}{}: {}", i == 0 ? "" : ", ", location(descriptors[i].location),
                            flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? "rw"
                            : flags == CU_MEM_ACCESS_FLAGS_PROT_READ    ? "r"
                                                                        : "none");
    }
    return "{" + text + "}";
}

/// The name of a handle of this type; empty for other types.
std::string kind_of(std::string_view type) {
    static const std::unordered_map<std::string_view, std::string> kinds = {
        {"CUmemGenericAllocationHandle", "mem"},
        {"CUcontext", "ctx"},
        {"CUstream", "stream"},
        {"CUevent", "event"},
        {"CUgraph", "graph"},
        {"CUgraphExec", "exec"},
        {"CUlibrary", "library"},
        {"CUkernel", "kernel"},
        {"CUfunction", "function"},
        {"CUmemoryPool", "pool"}};
    const auto found = kinds.find(type);
    return found != kinds.end() ? found->second : "";
}

/// A kernel's name without what every instance has: `Sentinel`.
std::string kernel_text(const char* mangled) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> demangled(
        abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
    std::string text = status == 0 ? demangled.get() : mangled;
    for (const std::string_view noise :
         {"void ", "symm::", "(anonymous namespace)::", "limited_entry<", "entry<"}) {
        for (std::size_t at = text.find(noise); at != std::string::npos; at = text.find(noise)) {
            text.erase(at, noise.size());
        }
    }
    return text.substr(0, text.find_first_of("(<>"));
}

/// One argument. `next` is the slot after it: how many elements this one points to.
std::string argument(const std::string& type, const void* slot, const void* next, bool succeeded,
                     const char* kernel, Names& names) {
    const bool out = type.ends_with('*') && !type.starts_with("const ");
    const std::string target = out ? type.substr(0, type.size() - 1) : type;
    const void* at = slot;
    if (out) {
        at = value<const void*>(slot);
        if (at == nullptr || !succeeded) {
            return at == nullptr ? "null" : "_";
        }
    }
    const char* const answer = out ? "-> " : "";
    if (target == "CUfunction" && kernel != nullptr) {
        return kernel_text(kernel);
    }
    if (target == "CUdeviceptr") {
        return fmt::format("{}{}", out ? "&" : "", names.of_address(value<CUdeviceptr>(at)));
    }
    if (const std::string kind = kind_of(target); !kind.empty()) {
        return fmt::format("{}{}", out ? "&" : "", names.of(kind, value<std::uint64_t>(at)));
    }
    if (target == "size_t" || target == "unsigned long long") {
        return answer + number(value<std::uint64_t>(at));
    }
    if (target == "int" || target == "unsigned int" || target == "CUdevice") {
        return answer + number(value<std::uint32_t>(at));
    }
    if (type == "const CUmemAllocationProp*" || type == "CUmemAllocationProp*") {
        return answer + properties(*value<const CUmemAllocationProp*>(slot));
    }
    if (type == "const CUmemAccessDesc*") {
        return access(value<const CUmemAccessDesc*>(slot), value<std::size_t>(next));
    }
    if (type == "const CUmemLocation*") {
        return location(*value<const CUmemLocation*>(slot));
    }
    if (type == "const CUlaunchConfig*") {
        const auto& launch = *value<const CUlaunchConfig*>(slot);
        return fmt::format("{{{} blocks x {} threads, {} shared, {}}}", launch.gridDimX,
                           launch.blockDimX, number(launch.sharedMemBytes),
                           names.of("stream", reinterpret_cast<std::uint64_t>(launch.hStream)));
    }
    if (type == "CUmemAllocationHandleType") {
        return handle_types(value<int>(slot));
    }
    if (type == "CUmemAllocationGranularity_flags") {
        return value<int>(slot) == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED ? "RECOMMENDED" : "MINIMUM";
    }
    if (type == "const char*") {
        return fmt::format("\"{}\"", value<const char*>(slot));
    }
    return "_";
}

}  // namespace

const std::vector<Parameter>* parameters_of(std::string_view name) {
    const auto found = functions().find(name);
    return found != functions().end() ? &found->second : nullptr;
}

std::vector<const void*> slots_in(const void* arguments, const std::vector<Parameter>& parameters) {
    std::vector<const void*> slots;
    std::size_t offset = 0;
    for (const Parameter& parameter : parameters) {
        offset = (offset + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
        slots.push_back(static_cast<const char*>(arguments) + offset);
        offset += parameter.size;
    }
    return slots;
}

std::string Names::of(const std::string& kind, std::uint64_t value) {
    if (value == 0) {
        return "0";
    }
    const auto [found, is_new] = known_.try_emplace({kind, value}, 0);
    if (is_new) {
        found->second = ++numbers_[kind];
    }
    return kind + std::to_string(found->second);
}

void Names::remember(CUdeviceptr base, std::size_t bytes) {
    auto first = ranges_.lower_bound(base);
    if (first != ranges_.begin() && std::prev(first)->first + std::prev(first)->second > base) {
        --first;
    }
    ranges_.erase(first, ranges_.lower_bound(base + bytes));
    ranges_[base] = bytes;
}

std::string Names::of_address(CUdeviceptr address) {
    const auto above = ranges_.upper_bound(address);
    if (above != ranges_.begin()) {
        const auto& [base, bytes] = *std::prev(above);
        if (address > base && address - base < bytes) {
            return of("va", base) + "+" + number(address - base);
        }
    }
    return of("va", address);
}

std::string text_of(std::string_view name, const std::vector<Parameter>* parameters,
                    const void* const* slots, CUresult result, const char* kernel, Names& names) {
    std::string text(without_version(name));
    text += '(';
    if (parameters == nullptr) {
        text += kernel != nullptr ? kernel_text(kernel) + ", ..." : "...";
    } else {
        const bool made_range = result == CUDA_SUCCESS && parameters->size() >= 2 &&
                                (*parameters)[0].type == "CUdeviceptr*" &&
                                (*parameters)[1].type == "size_t";
        if (made_range) {
            names.remember(*value<const CUdeviceptr*>(slots[0]), value<std::size_t>(slots[1]));
        }
        for (std::size_t i = 0; i < parameters->size(); ++i) {
            const void* const next = i + 1 < parameters->size() ? slots[i + 1] : nullptr;
            text += i == 0 ? "" : ", ";
            text += argument((*parameters)[i].type, slots[i], next, result == CUDA_SUCCESS, kernel,
                             names);
        }
    }
    text += ')';
    if (result != CUDA_SUCCESS) {
        text += fmt::format(" = {}", name_of(result));
    }
    return text;
}

}  // namespace symm::trace
