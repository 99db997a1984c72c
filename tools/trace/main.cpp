// The driver calls behind NCCL's functions and behind ours, from allocating memory to an AllReduce
// and back. Without GPUs or NCCL, NCCL's calls are read from a recording.

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "common/cli/cli.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/nccl/nccl_communicator.hpp"
#include "common/sys/error_text.hpp"
#include "common/sys/file.hpp"
#include "common/sys/table.hpp"
#include "labs/01_vmm_alloc/mem_alloc.hpp"
#include "labs/05_device_prims/reduction/result_check.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"
#include "tools/trace/driver_calls.hpp"

namespace {

using namespace symm;

constexpr std::size_t kBytes = 4 << 20;
constexpr std::size_t kCount = (1 << 20) / sizeof(float);  ///< An AllReduce: a quarter of kBytes.
constexpr Arithmetic kSum{DataType::kFloat, ReduceOp::kSum};

/// A step of both programs, and the call that makes it in each.
struct Step {
    std::string_view name;
    std::string_view nccl;
    std::string_view ours;
};
constexpr auto kTracedSteps = std::to_array<Step>({
    {"alloc", "ncclMemAlloc(4M)", "mem_alloc(4M) of lab 01"},
    {"setup", "ncclCommInitRank", "Communicator"},
    {"register", "ncclCommWindowRegister(4M, NCCL_WIN_COLL_SYMMETRIC)",
     "Communicator::register_memory(4M)"},
    {"reduce", "ncclAllReduce(1M), the first call", "Communicator::all_reduce(1M), the first call"},
    {"deregister", "ncclCommWindowDeregister", "Communicator::release"},
    {"destroy", "ncclCommDestroy", "Communicator's destructor"},
    {"free", "ncclMemFree", "mem_free of lab 01"},
});

/// Each step's lines, by its name.
using Lists = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Records the steps of one program on this rank.
class Recorder {
public:
    explicit Recorder(Rank& rank) : rank_(rank) {}

    /// All ranks begin a step together, and end it before the next begins.
    void operator()(const std::string& name, const std::function<void()>& step) {
        rank_.bootstrap().barrier(name);
        lists_[name] = folded(driver_calls_of(step));
        rank_.bootstrap().barrier(name);
    }
    /// A call of `all_reduce(in, out, stream)`, whose result is checked.
    void reduce(CUdeviceptr memory,
                const std::function<void(CUdeviceptr, CUdeviceptr, CUstream)>& all_reduce) {
        const CUdeviceptr out = memory + kBytes / 2;
        Verifier verifier(rank_.rank(), rank_.size());
        const Stream stream;
        verifier.fill(stream, kSum, memory, kCount);
        Verifier::poison(stream, out, kCount * sizeof(float));
        stream.synchronize("the input");
        (*this)("reduce", [&] { all_reduce(memory, out, stream.get()); });
        verifier.check(stream, kSum, out, kCount);
    }
    Lists lists() { return std::move(lists_); }

private:
    Rank& rank_;
    Lists lists_;
};

Lists trace_ours(Rank& rank) {
    Recorder step(rank);
    void* memory = nullptr;
    std::optional<Communicator> communicator;
    CUdeviceptr window = 0;
    step("alloc", [&] { memory = mem_alloc(kBytes); });
    const auto address = reinterpret_cast<CUdeviceptr>(memory);
    step("setup", [&] { communicator.emplace(rank); });
    step("register", [&] { window = communicator->register_memory(address, kBytes); });
    step.reduce(address, [&](CUdeviceptr in, CUdeviceptr out, CUstream stream) {
        communicator->all_reduce(in, out, kCount, kSum.type, kSum.op, stream);
    });
    step("deregister", [&] { communicator->release(window); });
    step("destroy", [&] { communicator.reset(); });
    step("free", [&] { mem_free(memory); });
    return step.lists();
}

Lists trace_nccl(Rank& rank, const NcclLibrary& nccl) {
    constexpr int kFloat = 7;  // ncclFloat; ncclSum is 0
    Recorder step(rank);
    const auto id = rank.bootstrap().allgather(
        "nccl id", rank.rank() == 0 ? NcclCommunicator::unique_id(nccl) : NcclLibrary::UniqueId{});
    void* memory = nullptr;
    std::optional<NcclCommunicator> communicator;
    step("alloc", [&] { nccl.check(nccl.mem_alloc(&memory, kBytes), "ncclMemAlloc"); });
    const auto address = reinterpret_cast<CUdeviceptr>(memory);
    step("setup", [&] { communicator.emplace(nccl, id[0], rank.size(), rank.rank()); });
    step("register", [&] { communicator->register_window(address, kBytes); });
    step.reduce(address, [&](CUdeviceptr in, CUdeviceptr out, CUstream stream) {
        communicator->all_reduce(in, out, kCount, kFloat, 0, stream);
    });
    step("deregister", [&] { communicator->deregister_windows(); });
    step("destroy", [&] { communicator.reset(); });
    step("free", [&] { nccl.check(nccl.mem_free(memory), "ncclMemFree"); });
    return step.lists();
}

/// NCCL's lists, and their source.
struct Recording {
    std::string source;
    Lists lists;
};

bool is_step(std::string_view name) {
    return std::ranges::find(kTracedSteps, name, &Step::name) != kTracedSteps.end();
}

/// Reads a file that write() has made. Throws UsageError.
Recording read(const std::string& path) {
    const std::string origin = fmt::format("--recording {}", path);
    std::istringstream file(read_file(path, origin));
    Recording recording;
    std::string name;
    std::getline(file, recording.source);
    bool is_right = one_line(recording.source) == recording.source;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("== ")) {
            name = line.substr(3, line.find(':') - 3);
        } else if (!line.empty()) {
            is_right = is_right && is_step(name) && one_line(line) == line;
            recording.lists[name].push_back(line);
        }
    }
    if (!is_right || recording.lists.empty()) {
        throw UsageError(origin + ": this file was not written by --record");
    }
    return recording;
}

void write(const std::string& path, const Recording& recording) {
    std::string text = recording.source + '\n';
    for (const Step& step : kTracedSteps) {
        text += fmt::format("\n== {}: {}\n", step.name, step.nccl);
        for (const std::string& line : recording.lists.at(std::string(step.name))) {
            text += line + '\n';
        }
    }
    write_file(path, text, "--record " + path);
}

/// The version of the real driver: `580.159.04`.
std::string driver_version() {
    std::ifstream file("/proc/driver/nvidia/version");
    for (std::string word; file >> word;) {
        if (word.find_first_not_of("0123456789.") == std::string::npos) {
            return word;
        }
    }
    return "of an unknown version";
}

struct Options {
    RankOptions ranks;
    std::string step;
    Recording recording;
    std::string record;
};

/// The lines of a step; none if the lists lack it.
std::vector<std::string> lines_of(const Lists& lists, std::string_view step) {
    const auto found = lists.find(step);
    return found != lists.end() ? found->second : std::vector<std::string>();
}

/// The calls of a step in lists of folded(), without those that only ask or select.
std::string calls_in(const Lists& lists, std::string_view step) {
    int calls = 0;
    int times = 1;
    for (const std::string& line : lines_of(lists, step)) {
        if (line.starts_with("    and to ask or select:")) {
            break;
        }
        if (line.ends_with(" times:")) {
            std::from_chars(line.data() + 4, line.data() + line.size(), times);
        } else {
            calls += line.starts_with("        ") ? times : 1;
        }
    }
    return lists.empty() ? "-" : std::to_string(calls);
}

void print(const Rank& rank, const Options& options, const Lists& ours, const Recording& nccl) {
    if (options.step.empty()) {
        TableRows table{{"driver calls that do something", "NCCL", "ours"}};
        for (const auto& [step, in_nccl, in_ours] : kTracedSteps) {
            table.push_back({std::string(step), calls_in(nccl.lists, step), calls_in(ours, step)});
        }
        rank.headline("\n{}", table_text(table));
    }
    for (const Step& step : kTracedSteps) {
        if (!options.step.empty() && options.step != step.name) {
            continue;
        }
        const auto list = [&](std::string_view who, std::string_view what, const Lists& lists) {
            const std::string lines =
                fmt::format("{}", fmt::join(lines_of(lists, step.name), "\n"));
            rank.headline("{}: {}\n{}\n", who, what, lines.empty() ? "    (none)" : lines);
        };
        rank.headline("\n== {}\n", step.name);
        if (!nccl.lists.empty()) {
            list("NCCL", step.nccl, nccl.lists);
        }
        list("ours", step.ours, ours);
    }
}

void run(Rank& rank, const Options& options) {
    std::string why_no_nccl;
    const auto library = load_nccl(rank, why_no_nccl);
    Recording nccl;
    if (library != nullptr) {
        nccl = {
            fmt::format("NCCL {}, driver {}, {} x {}, {:%F}", library->version(), driver_version(),
                        rank.size(), rank.gpu().name(), fmt::gmtime(std::time(nullptr))),
            trace_nccl(rank, *library)};
        if (!options.record.empty() && rank.rank() == 0) {
            write(options.record, nccl);
        }
    } else if (!options.record.empty()) {
        throw UsageError("--record: " + why_no_nccl);
    } else if (!options.recording.source.empty()) {
        nccl = options.recording;
        nccl.source += ", recorded";
    } else {
        nccl.source = "NCCL's calls are not shown: " + why_no_nccl;
    }
    const Lists ours = trace_ours(rank);
    rank.headline("{}\n{}\nrank 0 of {}\n", describe_driver(), nccl.source, rank.size());
    print(rank, options, ours, nccl);
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("The driver calls behind NCCL's functions and behind ours.", "06_allreduce_trace");
    Options options;
    add_rank_options(app, options.ranks, kMaxAllReduceRanks);
    std::string steps;
    for (const Step& step : kTracedSteps) {
        steps += fmt::format("{}{}", steps.empty() ? "" : ", ", step.name);
    }
    app.add_option_function<std::string>(
        "step",
        [&](const std::string& name) {
            if (!is_step(name)) {
                throw UsageError("there is no step '{}': use one of {}", name, steps);
            }
            options.step = name;
        },
        "Show only this step: " + steps);
    app.add_option_function<std::string>(
           "--recording", [&](const std::string& path) { options.recording = read(path); },
           "A file of --record with NCCL's calls, for machines that cannot run NCCL")
        ->type_name("FILE");
    add_output_option(app, "--record", options.record, "Write NCCL's calls to this file");
    app.footer(
        "va1 is an address, mem1 a handle, numbered in order of appearance. &va1 is where a call "
        "writes its answer,\n-> 2M the answer itself, _ an omitted argument. On GPUs this needs "
        "CUPTI, which comes with the\nCUDA Toolkit.");
    return run_main(app, argc, argv, [&] {
        return run_ranks(options.ranks, [&](Rank& rank) { run(rank, options); });
    });
}
