#include "common/course/results.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>

namespace symm::course {
namespace {

class Check {
public:
    Check() {
        const char* const number = std::getenv("SYMM_COURSE_RESULTS");
        if (number == nullptr) {
            return;
        }
        const int socket = std::atoi(number);
        std::array<char, kKeyBytes> key{};
        if (::recv(socket, key.data(), key.size(), MSG_WAITALL) == kKeyBytes) {
            ::fcntl(socket, F_SETFD, FD_CLOEXEC);
            key_.assign(key.data(), key.size());
            socket_ = socket;
            process_ = ::getpid();
        }
        ::unsetenv("SYMM_COURSE_RESULTS");
    }

    /// If the check has gone, nobody is left to tell.
    void send(std::string_view kind, std::string_view text) const {
        if (socket_ < 0 || ::getpid() != process_) {
            return;
        }
        std::string line = key_;
        line.append(" ").append(kind).append(" ").append(text).append("\n");
        for (std::size_t sent = 0; sent < line.size();) {
            const ssize_t more =
                ::send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
            if (more < 0 && errno != EINTR) {
                return;
            }
            sent += more < 0 ? 0 : static_cast<std::size_t>(more);
        }
    }

private:
    std::string key_;
    int socket_ = -1;
    pid_t process_ = 0;
};

// 101 is the first priority that programs may use: the learner's constructors come later.
[[gnu::init_priority(101)]] const Check check;

}  // namespace

void announce(std::string_view name) {
    check.send("announced", name);
}
void tell(std::string_view name, bool right) {
    check.send(right ? "right" : "wrong", name);
}
void describe(std::string_view json) {
    check.send("description", json);
}

}  // namespace symm::course
