#include "common/bootstrap/bootstrap.hpp"

namespace symm {

void Bootstrap::throw_async_error(std::string_view waiting_for) {
    if (const auto error = async_error(waiting_for)) {
        throw *error;
    }
}

std::vector<std::string> Bootstrap::allgather_text(std::string_view name, std::string_view local,
                                                   Deadline deadline) {
    std::vector<std::string> all;
    for (const auto& bytes : allgather_bytes(name, std::as_bytes(std::span(local)), deadline)) {
        all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return all;
}

void Bootstrap::agree(std::string_view name, const std::exception_ptr& error, Deadline deadline) {
    std::string local;  // empty: all went well
    if (error) {
        try {
            std::rethrow_exception(error);
        } catch (const std::exception& known) {
            local = std::string_view(known.what()).substr(0, kMaxContribution / 8);
        } catch (...) {
        }
        local = local.empty() ? "unknown error" : local;
    }
    std::vector<std::string> all;
    try {
        all = allgather_text(name, local, deadline);
    } catch (const BootstrapError&) {
        if (!error) {  // else the step's says more: often it waited for the rank that is missing
            throw;
        }
    }
    if (error) {
        std::rethrow_exception(error);
    }
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (!all[rank].empty()) {
            throw BootstrapError(static_cast<int>(rank), true, "rank {} failed: {}", rank,
                                 all[rank]);
        }
    }
}

void Bootstrap::require_size(int rank, std::string_view name, std::size_t bytes,
                             std::size_t expected) {
    if (bytes != expected) {
        throw BootstrapError(rank, false, "rank {} passed {} bytes to allgather '{}', not {}", rank,
                             bytes, name, expected);
    }
}

}  // namespace symm
