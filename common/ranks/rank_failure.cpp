#include "common/ranks/rank_failure.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <tuple>

#include "common/bootstrap/bootstrap.hpp"
#include "common/sys/error_text.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

std::filesystem::path note_path(const std::filesystem::path& directory, int rank) {
    return directory / fmt::format("failure.{}", rank);
}

}  // namespace

RankFailure failure_of(int rank, const std::exception_ptr& error) {
    RankFailure failure;
    failure.rank = rank;
    failure.when = std::chrono::steady_clock::now().time_since_epoch().count();
    try {
        std::rethrow_exception(error);
    } catch (const UsageError& usage) {
        failure.usage = true;
        failure.text = one_line(usage.what());
    } catch (const BootstrapError& apart) {
        failure.told = apart.told();
        failure.text = one_line(apart.what());  // it names the ranks itself
    } catch (const std::exception& own) {
        failure.text = fmt::format("rank {} failed: {}", rank, error_text(own));
    } catch (...) {
        failure.text = fmt::format("rank {} failed: unknown error", rank);
    }
    return failure;
}

const RankFailure& cause_of(const std::vector<RankFailure>& failures) {
    return *std::min_element(
        failures.begin(), failures.end(), [](const RankFailure& a, const RankFailure& b) {
            return std::tuple(!a.killed, a.told, a.when) < std::tuple(!b.killed, b.told, b.when);
        });
}

void throw_cause(const std::vector<RankFailure>& failures) {
    const RankFailure& cause = cause_of(failures);
    if (cause.usage) {
        throw UsageError(cause.text);
    }
    throw std::runtime_error(cause.text);
}

void leave_note(const std::filesystem::path& directory, const RankFailure& failure) noexcept {
    try {
        std::ofstream file(note_path(directory, failure.rank), std::ios::binary);
        file << failure.usage << ' ' << failure.told << ' ' << failure.when << '\n' << failure.text;
    } catch (const std::exception&) {  // the exit code remains
    }
}

std::optional<RankFailure> find_note(const std::filesystem::path& directory, int rank) {
    std::ifstream file(note_path(directory, rank), std::ios::binary);
    RankFailure failure;
    failure.rank = rank;
    if (!(file >> failure.usage >> failure.told >> failure.when)) {
        return {};
    }
    file.get();
    failure.text.assign(std::istreambuf_iterator<char>(file), {});
    return failure;
}

}  // namespace symm
