// The names of the driver's results. Written out: cuGetErrorName needs a driver, and an error has
// to be told where there is none.

#include "common/cuda/check.hpp"

namespace symm {

std::string_view name_of(CUresult result) {
    switch (result) {
#define SYMM_RESULT(code) \
    case code:            \
        return #code;
#include "common/cuda/results.inc"
#undef SYMM_RESULT
        default:
            return "an unlisted CUDA error";
    }
}

}  // namespace symm
