#include "labs/02_access/access_steps.hpp"

#include <fmt/ranges.h>

#include "common/cuda/check.hpp"
#include "common/test_pattern/test_pattern.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"

namespace symm {

void StepReport::expect(bool as_it_has_to_be, const std::string& line) {
    lines.push_back(as_it_has_to_be ? line : "WRONG: " + line);
    right = right && as_it_has_to_be;
}

namespace {

constexpr auto kNone = CU_MEM_ACCESS_FLAGS_PROT_NONE;
constexpr auto kRead = CU_MEM_ACCESS_FLAGS_PROT_READ;
constexpr auto kReadWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

}  // namespace

/// The state of a step: a buffer that no device may access yet, its users, and the report.
struct AccessStep::State {
    State(const StepContext& context, const CUmemAllocationProp& properties)
        : context(context), buffer(properties, context.bytes), drained(context.gpus) {
        for (const int device : context.matrix.users_of(context.owner)) {
            if (device != context.owner) {
                users.push_back(device);
            }
        }
    }

    const Gpu& gpu(int device) const { return context.gpu(device); }
    void line(std::string text) { report.lines.push_back(std::move(text)); }
    void set_access(const std::vector<int>& devices, CUmemAccess_flags flags) {
        allow(buffer.base(), buffer.size(), devices, flags);
        line(fmt::format("cuMemSetAccess({} {}, {})", devices.size() == 1 ? "device" : "devices",
                         fmt::join(devices, " "), name_of(flags)));
    }
    void expect_access(int device, CUmemAccess_flags wanted) {
        const CUmemAccess_flags flags = access_of(buffer.base(), device);
        report.expect(flags == wanted,
                      fmt::format("cuMemGetAccess(device {}) reports {}", device, name_of(flags)));
    }

    test_pattern::Range data(std::uint32_t seed) const {
        return {buffer.base(), context.bytes / sizeof(std::uint32_t), seed};
    }
    void expect_read(int device, std::uint32_t seed, const std::string& what) {
        const test_pattern::Result result = test_pattern::compare(gpu(device), data(seed));
        report.expect(result.right(), fmt::format("{}: {}", what, result.describe()));
    }
    /// Each of these devices in turn writes its own data, and all of them read it. Returns the
    /// seed of the last data.
    std::uint32_t use(const std::vector<int>& devices) {
        for (const int writer : devices) {
            ++seed;
            test_pattern::fill(gpu(writer), data(seed));
            for (const int reader : devices) {
                const test_pattern::Result result = test_pattern::compare(gpu(reader), data(seed));
                if (!result.right()) {
                    report.expect(false, fmt::format("device {} wrote, device {} read: {}", writer,
                                                     reader, result.describe()));
                }
            }
        }
        line(fmt::format("devices {}: each wrote {} bytes, and all read them",
                         fmt::join(devices, " "), context.bytes));
        return seed;
    }

    const StepContext& context;
    StepReport report;
    std::vector<int> users{context.owner};  // the owner first, then its peers
    std::uint32_t seed = 0;
    MappedMemory buffer;
    Drained drained;  // declared after the buffer: see gpu.hpp
};

namespace {

using Step = AccessStep::State;

void all_at_once(Step& step) {
    step.line(fmt::format("{} bytes of device {} mapped at {:#x}", step.buffer.size(),
                          step.context.owner, step.buffer.base()));
    step.expect_access(step.context.owner, kNone);  // not even the owner has access at first
    step.set_access(step.users, kReadWrite);
    for (const int device : step.users) {
        step.expect_access(device, kReadWrite);
    }
    step.use(step.users);
}

void one_by_one(Step& step) {
    for (const int device : step.users) {
        step.set_access({device}, kReadWrite);
        step.expect_access(device, kReadWrite);
    }
    step.use(step.users);
}

void read_only(Step& step) {
    const int reader = step.users.back();
    step.set_access(step.users, kReadWrite);
    test_pattern::fill(step.gpu(step.context.owner), step.data(1));
    if (const auto refused =
            refusal({CUDA_ERROR_NOT_SUPPORTED}, [&] { step.set_access({reader}, kRead); })) {
        step.line(fmt::format("this driver has no read-only access: {}", refused->what()));
        return;
    }
    step.expect_access(reader, kRead);
    step.expect_read(
        reader, 1, fmt::format("device {} reads what device {} wrote", reader, step.context.owner));
}

void added_later(Step& step) {
    const int added = step.users.back();
    const std::vector<int> first(step.users.begin(), step.users.end() - 1);
    if (first.empty()) {
        step.line("only one device: no other used the buffer before");
        step.set_access({added}, kReadWrite);
    } else {
        step.set_access(first, kReadWrite);
        const std::uint32_t seed = step.use(first);
        step.expect_access(added, kNone);
        step.set_access({added}, kReadWrite);
        // The call named one device. The others keep their rights, and the memory its data.
        step.expect_access(first.front(), kReadWrite);
        step.expect_read(added, seed,
                         fmt::format("device {} reads what was written before", added));
    }
    step.expect_access(added, kReadWrite);
    step.use(step.users);
}

void taken_away(Step& step) {
    const int removed = step.users.back();
    step.set_access(step.users, kReadWrite);
    step.use(step.users);
    step.set_access({removed}, kNone);
    step.expect_access(removed, kNone);
    if (step.users.size() > 1) {
        step.use({step.users.begin(), step.users.end() - 1});
    }
}

void host_access(Step& step) {
    const int node = host_node_of(step.context.owner);
    const MappedMemory& buffer = step.buffer;
    step.line(fmt::format("{} bytes of the host's NUMA node {} mapped at {:#x}", buffer.size(),
                          node, buffer.base()));
    allow_host(buffer.base(), buffer.size(), node);
    const CUmemAccess_flags rights = access_of(buffer.base(), node, CU_MEM_LOCATION_TYPE_HOST_NUMA);
    step.report.expect(rights == kReadWrite,
                       fmt::format("cuMemGetAccess(host) reports {}", name_of(rights)));
    const std::span words(buffer.as<std::uint32_t>(), step.context.bytes / sizeof(std::uint32_t));
    for (const Gpu& gpu : step.context.gpus) {
        const int device = gpu.ordinal();
        step.set_access({device}, kReadWrite);
        const std::uint32_t seed = 2 * static_cast<std::uint32_t>(device);
        for (std::size_t i = 0; i < words.size(); ++i) {
            words[i] = test_pattern::word(seed, i);
        }
        step.expect_read(device, seed, fmt::format("the processor wrote, device {} read", device));
        test_pattern::fill(gpu, step.data(seed + 1));
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < words.size(); ++i) {
            wrong += words[i] != test_pattern::word(seed + 1, i);
        }
        step.report.expect(wrong == 0,
                           fmt::format("device {} wrote, the processor read: {}", device,
                                       wrong == 0 ? fmt::format("all {} words right", words.size())
                                                  : fmt::format("{} words wrong", wrong)));
    }

    // Drivers refuse this with different results. The conformance suite found these.
    const MappedMemory of_device(device_memory(step.context.owner), step.context.bytes);
    const auto refused =
        refusal({CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_DEVICE},
                [&] { allow_host(of_device.base(), of_device.size(), node); });
    step.line(refused ? fmt::format("host access to device memory: refused, {}",
                                    name_of(refused->result()))
                      : "host access to device memory: granted (a coherent link)");
}

void written_by_all(Step& step) {
    step.set_access(step.users, kReadWrite);
    const std::size_t words = step.context.bytes / sizeof(std::uint32_t);
    const std::size_t each = words / step.users.size();
    const auto part = [&](std::size_t i) {
        const std::size_t first = i * each;
        return test_pattern::Range{step.buffer.base() + first * sizeof(std::uint32_t),
                                   i + 1 == step.users.size() ? words - first : each,
                                   static_cast<std::uint32_t>(step.users[i]), first};
    };
    // All write at the same time, each its own part. No device reads before all have written.
    for (std::size_t i = 0; i < step.users.size(); ++i) {
        test_pattern::queue_fill(step.gpu(step.users[i]), part(i));
    }
    for (const int writer : step.users) {
        step.gpu(writer).wait(fmt::format("the part of device {}", writer));
    }
    for (const int reader : step.users) {
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < step.users.size(); ++i) {
            wrong += test_pattern::compare(step.gpu(reader), part(i)).wrong;
        }
        step.report.expect(wrong == 0,
                           fmt::format("device {} wrote its part and read all {} words: {} wrong",
                                       reader, words, wrong));
    }
}

}  // namespace

const std::array<AccessStep, 7> kAccessSteps{{
    {"access for all users in one call", all_at_once},
    {"access for one device at a time", one_by_one},
    {"read-only", read_only},
    {"access added later", added_later},
    {"access taken away", taken_away},
    {"memory of the host, for the host and all devices", host_access, true},
    {"one buffer that every user writes and reads", written_by_all},
}};

StepReport AccessStep::operator()(const StepContext& context) const {
    Step step(context, in_host_memory ? host_numa_memory(host_node_of(context.owner))
                                      : device_memory(context.owner));
    step.report.title = title;
    run(step);
    return std::move(step.report);
}

}  // namespace symm
