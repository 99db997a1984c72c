#include "common/sys/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "common/sys/system_error.hpp"

namespace symm {

void UniqueFd::give_back(int fd) {
    ::close(fd);  // on Linux the number is free even after EINTR: no retry
}

UniqueFd UniqueFd::duplicate() const {
    const int copy = ::fcntl(value_, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (copy < 0) {
        throw_errno("fcntl({}, F_DUPFD_CLOEXEC)", value_);
    }
    return UniqueFd(copy);
}

UniqueFd beside_standard_streams(UniqueFd fd) noexcept {
    if (!fd || fd.get() > STDERR_FILENO) {
        return fd;
    }
    UniqueFd other(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    const int error = errno;
    fd.reset();
    errno = error;
    return other;
}

}  // namespace symm
