#pragma once
/// \file
/// An exploration: the loop over executions, and what ties its parts.
///
/// 1. explore() runs one execution after another, as search.hpp says, until all were visited or one
///    has failed.
/// 2. An execution is set up by the scene. Then threads run until none is ready (schedule.hpp), a
///    move of one of those that wait is chosen, and made (waits.hpp), and so on.
/// 3. The scene's code enters the explorer wherever it waits, meets others or accesses memory
///    (instrumentation.cpp): see Inside.
/// 4. An execution that fails jumps back to the loop (log.hpp).

#include <optional>

#include "tools/explore/accesses.hpp"
#include "tools/explore/streams.hpp"

namespace symm::explore {

class Exploration;
extern Exploration* running;  ///< There is one at a time. Null if there is none.

/// What an execution was: with the same choices, the next one is the same.
struct FirstExecution {
    bool failed = false;
    std::uint64_t trace = 0;            ///< Log::trace()
    std::vector<std::uint64_t> values;  ///< Log::values()
    unsigned executions = 0;            ///< Log::executions(); 0: there was none.

    bool is_like(const FirstExecution& other) const {
        return failed == other.failed && trace == other.trace && values == other.values;
    }
};

class Exploration final : public Scene {
public:
    /// The scene's code has entered the explorer, and leaves it when this dies. In between, the
    /// explorer's own accesses are not the scene's.
    class Inside {
    public:
        explicit Inside(Exploration& all) : thread(*all.thread_), all_(all) {
            all.inside_ = true;
            all.memory_.reveal();
            all.memory_.settle();
            all.accesses_.settle_volatile(thread);
        }
        ~Inside() {
            all_.thread_ = &thread;
            all_.memory_.hide();
            all_.inside_ = false;
        }
        Inside(const Inside&) = delete;

        Log& log() const { return all_.log_; }
        Schedule& schedule() const { return all_.schedule_; }
        Accesses& accesses() const { return all_.accesses_; }
        Streams& streams() const { return all_.streams_; }

        Thread& thread;  ///< That runs, or whose poll is called.

    private:
        Exploration& all_;
    };

    Exploration(const Options& options, const std::function<void(Scene&)>& setup)
        : options_(options), setup_(setup) {
        running = this;
    }
    ~Exploration() { running = nullptr; }

    Report explore();
    /// Ends explore() after the first execution if it is not like this one.
    void expect_first(const FirstExecution& expected) { expected_ = &expected; }
    bool is_unexpected() const { return is_unexpected_; }
    const FirstExecution& first() const { return first_; }

    // For the scene's setup.
    void launch(int rank, const Shape& shape,
                const std::function<void(const simt::ThreadBlock&)>& body) override;
    void launch(int rank, const Shape& shape,
                const std::function<void(const simt::ThreadBlock&)>& body,
                LaunchOrder order) override;
    void* allocate_bytes(std::size_t bytes, bool zeroed) override {
        return memory_.allocate(bytes, zeroed);
    }
    void* multicast_bytes(const std::vector<void*>& copies, std::size_t bytes) override;
    void name_bytes(const void* memory, std::size_t bytes, std::size_t element, Shown shown,
                    const std::string& name, int rank) override;

    // For the scene's code.
    bool runs_thread() const { return !inside_; }
    /// The setup stores these bytes.
    void set_up(const void* address, std::size_t bytes) {
        if (is_set_up_) {
            memory_.set_up(address, bytes);
        }
    }
    SceneMemory& memory() { return memory_; }
    Log& log() { return log_; }
    const Thread& thread() const { return *thread_; }
    /// As HostBlock::copies_of(), in the order of the ranks. Additions, which release, begin with
    /// any of them, each thread's with the same one: so of two ranks, either comes first. That of
    /// relaxed accesses says nothing.
    simt::MulticastCopies copies_of(Thread& thread, const void* address, simt::SwitchAccess access);
    const SceneMemory& memory() const { return memory_; }
    simt::Awaited await(const std::function<bool()>& poll, const std::uint32_t* gave_up);
    [[noreturn]] void fail(const std::string& why);
    [[noreturn]] void crash(void* address);

private:
    enum class End { kComplete, kAsleep, kFailed };

    End execute();
    bool fails_at_random(const std::function<bool()>& enough);
    void shorten(Report& report);
    void begin_execution();
    bool run(Thread& thread, const std::function<bool()>& code);
    std::vector<std::uint64_t> graph();
    bool begins_as_expected(End end);

    const Options& options_;
    const std::function<void(Scene&)>& setup_;
    SceneMemory memory_;
    Memory model_{memory_.origin()};
    Search search_{options_};
    Log log_{memory_};
    Schedule schedule_{options_.kernel_end, memory_, log_};
    Streams streams_{options_.kernel_end, schedule_, search_, log_};
    Waits waits_{options_, memory_, model_, search_, log_};
    Accesses accesses_{memory_, model_, search_, schedule_, log_, waits_};
    /// What multicast addresses have behind them.
    struct Multicast {
        char* begin;
        std::size_t bytes;
        std::vector<void*> copies;
    };
    std::vector<Multicast> multicasts_;
    Thread* thread_ = nullptr;  ///< Whose code runs, or has entered the explorer.
    bool inside_ = true;
    bool is_set_up_ = false;  ///< The setup runs.
    bool polls_over_links_ = false;
    FirstExecution first_;
    const FirstExecution* expected_ = nullptr;
    bool is_unexpected_ = false;
};

/// The first execution, while memory is hidden: see unseen_loads.cpp.
FirstExecution hidden_execution(const Options& options, const std::function<void(Scene&)>& setup);

/// `first` is not like `hidden`. Returns a report if that is since a thread loads what the explorer
/// does not see. Throws where the first execution is another one each time.
std::optional<Report> unseen_load(const Options& options, const std::function<void(Scene&)>& setup,
                                  const FirstExecution& first, const FirstExecution& hidden);

/// Whether a thread of a scene runs, and not the explorer itself.
inline bool is_running() {
    return running != nullptr && running->runs_thread();
}

}  // namespace symm::explore
