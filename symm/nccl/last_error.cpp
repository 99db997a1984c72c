#include "symm/nccl/last_error.hpp"

#include <array>
#include <mutex>

#include "common/sys/log.hpp"

namespace symm::drop_in {
namespace {

constexpr std::size_t kSize = 1024;  // as NCCL's

std::mutex mutex;
std::array<char, kSize> ours{};
std::array<char, kSize> nccls_then{};  ///< NCCL's text at our last error.

void copy(std::string_view text, std::array<char, kSize>& to) {
    to[text.copy(to.data(), kSize - 1)] = '\0';
}

}  // namespace

Result failed(Result result, std::string_view why) noexcept {
    log::write(log::Level::kError, why);
    const std::lock_guard lock(mutex);
    copy(why, ours);
    copy(nccl::GetLastError(nullptr), nccls_then);
    return result;
}

const char* last_error(ncclComm* comm) {
    thread_local std::array<char, kSize> told{};  // another thread may fail while this one reads
    const char* const nccls = nccl::GetLastError(comm);
    const std::lock_guard lock(mutex);
    // A text that has changed since is of a later error.
    const bool is_ours = ours[0] != '\0' && std::string_view(nccls) == nccls_then.data();
    copy(is_ours ? ours.data() : nccls, told);
    return told.data();
}

}  // namespace symm::drop_in
