#pragma once
/// \file
/// The arguments of a driver call as text.
///
/// Addresses, handles and streams get names in the order in which they appear: `va1`, `mem2`,
/// `stream1`. So two runs give the same text. `&mem2` is where a call writes its answer, `-> 2M` is
/// the answer itself, `_` an argument that is not shown.
///
/// An argument's kind follows from the type that driver/functions.inc gives it: CUdeviceptr and
/// CUmemGenericAllocationHandle are the same type to the compiler; only the text differs.

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace symm::trace {

/// A parameter of a driver function.
struct Parameter {
    std::string type;  ///< Without blanks around the asterisk: `CUdeviceptr*`.
    std::size_t size;
    std::size_t alignment;
};

/// The parameters of the function of this name, as the driver has it (`cuMemGetInfo_v2`); null for
/// one that neither driver/functions.inc nor functions_of_nccl.inc has.
const std::vector<Parameter>* parameters_of(std::string_view name);

/// Where each argument lies in CUPTI's struct of a call, which has the parameters as members.
std::vector<const void*> slots_in(const void* arguments, const std::vector<Parameter>& parameters);

/// Where each argument lies, for a function that was called with them: not of temporaries.
template <class... Arguments>
std::array<const void*, sizeof...(Arguments)> slots_of(const Arguments&... arguments) {
    return {static_cast<const void*>(&arguments)...};
}

/// The names that one thread's objects have got.
class Names {
public:
    /// Begins a new list: the next object of each kind is number 1 again.
    void restart() { numbers_.clear(), known_.clear(); }
    /// `mem1`; `0` for null.
    std::string of(const std::string& kind, std::uint64_t value);
    /// `va1`, or `va1+2M` inside of a range that remember() was told.
    std::string of_address(CUdeviceptr address);
    /// A new range: what was in its place is gone.
    void remember(CUdeviceptr base, std::size_t bytes);

private:
    std::map<std::string, int> numbers_;
    std::map<std::pair<std::string, std::uint64_t>, int> known_;
    std::map<CUdeviceptr, std::size_t> ranges_;
};

/// A function's name without its version: `cuMemGetInfo` for `cuMemGetInfo_v2`.
inline std::string_view without_version(std::string_view name) {
    return name.substr(0, name.rfind("_v"));
}

/// The text of a call. `slots` has an entry per parameter; without parameters the arguments are
/// `...`. `kernel` is the name of the kernel that a call launches, or null.
std::string text_of(std::string_view name, const std::vector<Parameter>* parameters,
                    const void* const* slots, CUresult result, const char* kernel, Names& names);

}  // namespace symm::trace
