#pragma once
/// \file
/// What becomes of exceptions in the C interface: a result, and a text for symm_last_error().

#include <array>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/cuda/check.hpp"
#include "common/sys/error_text.hpp"
#include "common/sys/refuse_unless.hpp"
#include "common/sys/usage_error.hpp"
#include "symm/c/symm.h"

namespace symm {

/// The text of this thread's last error.
inline thread_local std::array<char, 2048> last_error{};

template <class... Kinds>
bool is(const std::exception& error) {
    return ((dynamic_cast<const Kinds*>(&error) != nullptr) || ...);
}

inline symm_result kind_of(const std::exception& error) {
    return is<BootstrapError>(error)                      ? SYMM_ERROR_RANK
           : is<CudaError>(error)                         ? SYMM_ERROR_CUDA
           : is<std::system_error, std::bad_alloc>(error) ? SYMM_ERROR_SYSTEM
           : is<UsageError, std::logic_error>(error)      ? SYMM_ERROR_INVALID_ARGUMENT
                                                          : SYMM_ERROR_FAILED;
}

inline void keep_text(std::string_view text) {
    last_error[text.copy(last_error.data(), last_error.size() - 1)] = '\0';
}

/// Runs a function's body. No exception passes: its text is kept, its kind returned.
template <class Body>
symm_result guarded(const Body& body) noexcept {
    try {
        body();
        return SYMM_SUCCESS;
    } catch (const std::exception& error) {
        try {
            keep_text(error_text(error));
        } catch (const std::exception&) {  // no memory for a better text
            keep_text(error.what());
        }
        return kind_of(error);
    } catch (...) {
        keep_text("unknown error");
        return SYMM_ERROR_FAILED;
    }
}

/// Throws if a pointer that the caller must pass is null.
inline void require(const void* pointer, const char* name) {
    refuse_unless(pointer != nullptr, "{} is a null pointer", name);
}

}  // namespace symm
