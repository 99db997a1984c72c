// Runs one execution after another, until all were visited or one has failed.

#include "tools/explore/exploration.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <ctime>
#include <map>
#include <stdexcept>

namespace symm::explore {

Exploration* running = nullptr;

void Exploration::name_bytes(const void* memory, std::size_t bytes, std::size_t element,
                             Shown shown, const std::string& name, int rank) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    log_.name({begin, begin + bytes, element, shown, rank,
               rank < 0 ? name : fmt::format("r{}.{}", rank, name)});
}

void* Exploration::multicast_bytes(const std::vector<void*>& copies, std::size_t bytes) {
    if (copies.size() > simt::MulticastCopies::kMost) {
        throw std::runtime_error("too many ranks behind a multicast address");
    }
    return multicasts_.emplace_back(Multicast{memory_.allocate_multicast(bytes), bytes, copies})
        .begin;
}

simt::MulticastCopies Exploration::copies_of(Thread& thread, const void* address,
                                             simt::SwitchAccess access) {
    simt::MulticastCopies found{};
    for (const auto& [begin, bytes, copies] : multicasts_) {
        const auto offset = static_cast<std::size_t>(static_cast<const char*>(address) - begin);
        for (std::size_t i = 0; offset < bytes && i < copies.size(); ++i) {
            found.at[found.count++] = static_cast<char*>(copies[i]) + offset;
        }
    }
    if (access == simt::SwitchAccess::kAdd && found.count > 1) {
        if (!thread.adds_first_to) {
            thread.adds_first_to = search_.choose(found.count, log_.trace());
        }
        std::rotate(found.at, found.at + *thread.adds_first_to, found.at + found.count);
    }
    return found;
}

void Exploration::launch(int rank, const Shape& shape,
                         const std::function<void(const simt::ThreadBlock&)>& body) {
    schedule_.launch(*this, rank, shape, false, [this, body](Thread& thread) {
        run(thread, [&] { return body(thread.handle), true; });
    });
}

void Exploration::launch(int rank, const Shape& shape,
                         const std::function<void(const simt::ThreadBlock&)>& body,
                         LaunchOrder order) {
    const auto threads = schedule_.launch(*this, rank, shape, true, [this, body](Thread& thread) {
        run(thread, [&] { return body(thread.handle), true; });
        streams_.end(thread);
    });
    const dim3& grid = shape.blocks;
    streams_.add(rank, order, std::size_t{grid.x} * grid.y * grid.z, threads);
}

// Runs the scene's code, up to its last access.
bool Exploration::run(Thread& thread, const std::function<bool()>& code) {
    thread_ = &thread;
    memory_.hide();
    inside_ = false;
    const bool result = code();
    { const Inside settles(*this); }
    inside_ = true;
    memory_.reveal();
    return result;
}

simt::Awaited Exploration::await(const std::function<bool()>& poll, const std::uint32_t* gave_up) {
    if (!runs_thread()) {
        throw std::runtime_error(
            "the host waits while it sets up the scene, where no thread runs that could end its "
            "wait: only the code of a launch may wait");
    }
    const Inside inside(*this);
    const simt::Awaited how = waits_.await(
        inside.thread, [&] { return run(inside.thread, poll); }, gave_up);
    for (const auto& polled : inside.thread.wait.polled) {
        const std::uintptr_t address = model_.locations()[polled.location].address;
        polls_over_links_ |= log_.is_of_another_rank(address, inside.thread);
    }
    return how;
}

void Exploration::fail(const std::string& why) {
    inside_ = true;
    memory_.reveal();
    log_.fail(why);
}

void Exploration::crash(void* address) {
    inside_ = true;
    memory_.reveal();
    accesses_.require_written();  // it says where the address came from
    const auto [begin, end] = thread_->fiber->stack();
    if (const auto at = reinterpret_cast<std::uintptr_t>(address); begin - at <= end - begin) {
        log_.fail(
            fmt::format("{} needs more than the {} bytes of its stack: an endless recursion, "
                        "or larger local variables than the explorer has room for",
                        thread_->name(), end - begin));
    }
    log_.fail(fmt::format("{} accesses address {}", thread_->name(), address));
}

void Exploration::begin_execution() {
    memory_.clear();
    multicasts_.clear();
    model_.clear();
    log_.clear();
    schedule_.clear();
    streams_.clear();
    waits_.clear();
    accesses_.clear();
    search_.begin_execution();
    inside_ = true;
    // The word of fence(): the first.
    zeroed<std::uint64_t>(1, "the order of fence.sc");
}

Exploration::End Exploration::execute() {
    begin_execution();
    if (sigsetjmp(log_.failed(), 1) != 0) {
        inside_ = true;
        return End::kFailed;
    }
    accesses_.begin_setup(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
    is_set_up_ = true;
    setup_(*this);
    is_set_up_ = false;
    memory_.end_setup();
    log_.begin_steps();
    while (true) {
        schedule_.run_ready();
        if (waits_.is_redundant(schedule_.threads())) {
            return End::kAsleep;
        }
        std::vector<ThreadMove> moves;
        std::map<int, std::vector<std::size_t>> polled;
        bool ended = true;
        for (Thread& thread : schedule_.threads()) {
            ended = ended && thread.state == ThreadState::kEnded;
            if (thread.state != ThreadState::kWaits) {
                continue;
            }
            const auto& its_moves = waits_.moves_of(thread);
            moves.insert(moves.end(), its_moves.begin(), its_moves.end());
            for (const auto& one : thread.wait.polled) {
                polled[thread.index].push_back(one.location);
            }
        }
        if (ended) {
            log_.refuse_unseen();
            accesses_.require_written();
            return End::kComplete;
        }
        if (moves.empty() && search_.has_learnt()) {
            return End::kAsleep;  // a loop may also have polled what was no choice before
        }
        if (moves.empty()) {
            waits_.fail_deadlocked(schedule_.threads());
        }
        const ThreadMove* const move = search_.next(moves, polled, log_.trace());
        if (move == nullptr) {
            return End::kAsleep;
        }
        Thread& thread = schedule_.threads()[static_cast<std::size_t>(move->thread)];
        if (thread.state != ThreadState::kWaits) {
            refuse_chance();
        }
        waits_.make(thread, *move);
    }
}

// Which store each load read, and the order of the stores: executions that agree in both, and in
// the triggers that count, are the same.
std::vector<std::uint64_t> Exploration::graph() {
    std::vector<std::uint64_t> graph = streams_.triggers();
    for (const Thread& thread : schedule_.threads()) {
        graph.push_back(~std::uint64_t{0});
        graph.insert(graph.end(), thread.reads.begin(), thread.reads.end());
    }
    std::map<std::uintptr_t, std::vector<std::uint64_t>> orders;
    for (const Location& location : model_.locations()) {
        for (const StoreRecord* store : location.stores) {
            orders[location.address].push_back(store->id);
        }
    }
    for (const auto& [address, order] : orders) {
        graph.push_back(~std::uint64_t{0} - 1);
        graph.insert(graph.end(), order.begin(), order.end());
    }
    return graph;
}

// Returns false if the first execution is not like the one that is expected.
bool Exploration::begins_as_expected(End end) {
    if (first_.executions == 0 && !search_.has_learnt()) {
        first_ = {end == End::kFailed, log_.trace(), log_.values(), log_.executions()};
        is_unexpected_ = expected_ != nullptr && !first_.is_like(*expected_);
    }
    return !is_unexpected_;
}

void on_fault(int signal, siginfo_t* info, void*) {
    const bool is_access = signal == SIGSEGV || signal == SIGBUS;
    if (running != nullptr && (is_access || running->runs_thread())) {
        if (!is_access) {
            running->fail(
                fmt::format("{} stops: {}", running->thread().name(), ::strsignal(signal)));
        }
        running->crash(info->si_addr);
    }
    std::signal(signal, SIG_DFL);  // the access is repeated, and faults again
}

// Of processor time, since other programs must not decide how far a search comes.
double seconds_used() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

Report Exploration::explore() {
    const double start = seconds_used();
    const auto seconds = [&] { return seconds_used() - start; };
    Report report;
    std::uint64_t visited =
        0;            // with those that were given up, since an equivalent one was visited
    double told = 0;  // when `progress` was last called
    // No random executions where all are compared, or where a recording must be the same again.
    bool was_random = options_.collect || options_.record;
    while (true) {
        End end = End::kAsleep;
        const bool samples = options_.sample != 0 && visited >= options_.sample;
        if (samples || (!was_random && seconds() > options_.random_after)) {
            const auto enough = [&, ends = seconds_used() + 1, left = options_.sample]() mutable {
                return samples ? left-- == 0 : seconds_used() >= ends;
            };
            end = fails_at_random(enough) ? End::kFailed : End::kAsleep;
            was_random = !search_.has_learnt();
            if (samples && was_random && end != End::kFailed) {
                report.executions += options_.sample;
                report.why = fmt::format("sampled, of perhaps {:.1g} (--all: every one)",
                                         static_cast<double>(visited) / search_.visited_part());
                break;
            }
        }
        if (end != End::kFailed && !search_.has_learnt()) {
            end = execute();
        }
        report.threads = static_cast<int>(schedule_.threads().size());
        if (!begins_as_expected(end)) {
            break;
        }
        if (end == End::kFailed) {
            ++report.executions;
            report.failed = true;
            log_.report(report);
            shorten(report);
            break;
        }
        if (search_.has_learnt()) {
            search_.restart();
            report.executions = visited = 0;
            report.graphs.clear();
            report.steps.clear();
            continue;
        }
        ++visited;
        report.executions += end == End::kComplete ? 1 : 0;
        if (report.executions == 1 && report.over_links == 0) {
            report.over_links = log_.over_links();
        }
        if (options_.collect && end == End::kComplete) {
            report.graphs.insert(graph());
        }
        if (options_.record && end == End::kComplete && report.steps.empty()) {
            log_.report(report);
        }
        if (!search_.advance()) {
            report.exhausted = true;
            break;
        }
        const double now = seconds();
        const bool is_last = visited >= options_.most_executions;
        if (is_last || now > options_.seconds) {
            report.why =
                fmt::format("stopped after {}: perhaps {:.2g} % of all",
                            is_last ? fmt::format("{} executions", options_.most_executions)
                                    : fmt::format("{} s", options_.seconds),
                            100 * search_.visited_part());
            break;
        }
        if (options_.progress && now > told + 1) {
            told = now;
            options_.progress({report.executions, now, search_.visited_part()});
        }
    }
    report.polls_over_links = polls_over_links_;
    report.seconds = seconds();
    return report;
}

Report explore(const Options& options, const std::function<void(Scene&)>& setup) {
    static std::array<char, 64 * 1024> alternate;  // for the fault of a thread without stack
    const stack_t stack{alternate.data(), 0, alternate.size()};
    ::sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    ::sigaction(SIGSEGV, &action, nullptr);
    ::sigaction(SIGBUS, &action, nullptr);
    for (const int stop : {SIGABRT, SIGILL, SIGFPE, SIGTRAP}) {  // assert(), __trap() ...
        ::sigaction(stop, &action, nullptr);
    }
    const FirstExecution hidden = hidden_execution(options, setup);
    FirstExecution first;
    {
        Exploration exploration(options, setup);
        exploration.expect_first(hidden);
        Report report = exploration.explore();
        if (!exploration.is_unexpected()) {
            return report;
        }
        first = exploration.first();
    }
    if (const auto unseen = unseen_load(options, setup, first, hidden)) {
        return *unseen;
    }
    return Exploration(options, setup).explore();
}

std::array<Report, 3> explore_each_way(Options options, const std::function<void(Scene&)>& setup) {
    options.collect = true;
    std::array<Report, 3> reports;
    for (std::size_t i = 0; i < reports.size(); ++i) {
        options.reduction = static_cast<Reduction>(i);
        reports[i] = explore(options, setup);
    }
    return reports;
}

}  // namespace symm::explore
