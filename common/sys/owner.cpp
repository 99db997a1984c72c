#include "common/sys/owner.hpp"

#include <exception>

#include "common/sys/log.hpp"

namespace symm {

void detail::log_current_exception() noexcept {
    try {
        throw;
    } catch (const IsGone&) {
    } catch (const std::exception& error) {
        log::write(log::Level::kError, error.what());
    } catch (...) {
        log::write(log::Level::kError, "a resource could not be released");
    }
}

}  // namespace symm
