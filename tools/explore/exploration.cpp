// Runs one execution after another, until all were visited or one has failed.

#include "tools/explore/exploration.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>

// The section of all __shared__ variables (cuda_kernel.hpp), if there are any.
extern "C" [[gnu::weak]] char __start_symm_shared, __stop_symm_shared;  // NOLINT: the linker's

namespace symm::explore {

Exploration* running = nullptr;

Exploration::Exploration(const Options& options, const std::function<void(Scene&)>& setup)
    : options_(options),
      setup_(setup),
      search_(options),
      statics_(&__start_symm_shared),
      static_bytes_(static_cast<std::size_t>(&__stop_symm_shared - &__start_symm_shared)) {
    if (scene_ == MAP_FAILED) {
        throw std::runtime_error("no memory for a scene");
    }
    running = this;
}

Exploration::~Exploration() {
    running = nullptr;
    ::munmap(scene_, kSceneBytes);
}

void Exploration::fail(const std::string& why) {
    inside_ = true;
    why_ = why;
    siglongjmp(failed_, 1);
}

void Exploration::begin_execution() {
    std::memset(scene_, 0, used_);
    static_cast<Execution&>(*this) = {};
    allocate<std::uint64_t>(1, "the order of fence.sc");  // the word of fence(): the first
    log_.clear();
    bytes_.clear();
    memory_.clear();
    races_.clear();
    search_.begin_execution();
}

Exploration::End Exploration::execute() {
    begin_execution();
    if (sigsetjmp(failed_, 1) != 0) {
        return End::kFailed;
    }
    setup_(*this);
    initial_.assign(scene_, scene_ + used_);
    while (true) {
        run_ready();
        if (is_redundant()) {
            return End::kAsleep;
        }
        std::vector<ThreadMove> moves;
        std::map<int, std::vector<std::size_t>> polled;
        bool ended = true;
        for (std::size_t i = 0; i < thread_count_; ++i) {
            Thread& thread = threads_[i];
            ended = ended && thread.state == ThreadState::kEnded;
            if (thread.state != ThreadState::kWaits) {
                continue;
            }
            if (is_stale(thread)) {
                add_moves(thread);
            }
            moves.insert(moves.end(), thread.wait.moves.begin(), thread.wait.moves.end());
            for (const auto& one : thread.wait.polled) {
                polled[static_cast<int>(i)].push_back(one.location);
            }
        }
        if (ended) {
            return End::kComplete;
        }
        if (moves.empty()) {
            fail(deadlock());
        }
        const ThreadMove* const move = search_.next(moves, polled);
        if (move == nullptr) {
            return End::kAsleep;
        }
        Thread& thread = threads_[static_cast<std::size_t>(move->thread)];
        if (thread.state != ThreadState::kWaits) {
            throw std::runtime_error("the scene is not deterministic");
        }
        make(thread, *move);
    }
}

// Which store each load read, and the order of the stores: executions that agree in both are the
// same.
std::vector<std::uint64_t> Exploration::graph() {
    std::vector<std::uint64_t> graph;
    for (std::size_t i = 0; i < thread_count_; ++i) {
        graph.push_back(~std::uint64_t{0});
        graph.insert(graph.end(), threads_[i].reads.begin(), threads_[i].reads.end());
    }
    std::map<std::uintptr_t, std::vector<std::uint64_t>> orders;
    for (const Location& location : memory_.locations()) {
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

void on_fault(int signal, siginfo_t* info, void*) {
    if (running != nullptr) {
        running->crash(info->si_addr);
    }
    std::signal(signal, SIG_DFL);  // the access is repeated, and faults again
}

// Whether one of a second's random executions fails.
bool Exploration::fails_at_random() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    search_.at_random(true);
    bool failed = false;
    while (!failed && !begin_again_ && std::chrono::steady_clock::now() < end) {
        failed = execute() == End::kFailed;
    }
    search_.at_random(false);
    return failed;
}

Report Exploration::explore() {
    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    Report report;
    std::uint64_t visited =
        0;  // with those that were given up, since an equivalent one was visited
    // No random executions where all are compared, or where a recording must be the same again.
    bool was_random = options_.collect || options_.record;
    while (true) {
        End end = End::kAsleep;
        if (!was_random && seconds() > options_.random_after) {
            end = fails_at_random() ? End::kFailed : End::kAsleep;
            was_random = !begin_again_;
        }
        if (end != End::kFailed && !begin_again_) {
            end = execute();
        }
        report.threads = static_cast<int>(thread_count_);
        if (end == End::kFailed) {
            ++report.executions;
            report.failed = true;
            report.why = why_;
            report_steps(report);
            report.involved = involved_;
            if (report.involved.empty() && !report.steps.empty()) {
                report.involved = {static_cast<long>(report.steps.size()) - 1};
            }
            break;
        }
        if (begin_again_) {  // some choices were none so far, or will be none
            begin_again_ = false;
            search_.restart();
            report.executions = visited = 0;
            report.graphs.clear();
            report.steps.clear();
            continue;
        }
        ++visited;
        report.executions += end == End::kComplete ? 1 : 0;
        if (report.executions == 1 && report.over_links == 0) {
            for (const LoggedStep& step : log_) {
                const NamedMemory* const memory = memory_at(step.access.address);
                if (memory != nullptr && memory->rank >= 0 &&
                    memory->rank != threads_[static_cast<std::size_t>(step.thread)].rank) {
                    report.over_links += (step.access.size + 15) / 16;  // memcpy is one step
                }
            }
        }
        if (options_.collect && end == End::kComplete) {
            report.graphs.insert(graph());
        }
        if (options_.record && end == End::kComplete && report.steps.empty()) {
            log_stored();
            report_steps(report);
        }
        if (!search_.advance()) {
            report.exhausted = true;
            break;
        }
        if (visited >= options_.most_executions) {
            report.why = fmt::format("stopped after {} executions", options_.most_executions);
            break;
        }
        if (seconds() > options_.seconds) {
            report.why = fmt::format("stopped after {} s", options_.seconds);
            break;
        }
    }
    report.seconds = seconds();
    return report;
}

void kernel_end() {
    running->end_kernel();
}
void leave_block() {
    running->leave_block();
}
const simt::ThreadBlock& this_block() {
    return running->this_block();
}
dim3 block_dim() {
    return running->block_dim();
}
void fail(const std::string& why) {
    running->fail(why);
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

namespace symm::simt {

Awaited await(const std::function<bool()>& poll, const std::uint32_t* gave_up) {
    return explore::running->await(poll, gave_up);
}
void acquire_both() {
    explore::running->acquire_both();
}

}  // namespace symm::simt
