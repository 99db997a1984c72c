#include "labs/02_access/access_steps.hpp"

#include <fmt/format.h>

#include <chrono>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/pattern/pattern.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"
#include "labs/02_access/shared_buffer.hpp"

namespace symm {
namespace {

constexpr auto kNone = CU_MEM_ACCESS_FLAGS_PROT_NONE;
constexpr auto kReadWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

/// A step at work: a buffer that nobody may access yet, who may use it, and the report.
struct Step {
    Step(const StepContext& context, const CUmemAllocationProp& properties, std::string title)
        : context(context), buffer(properties, context.bytes), drained(context.gpus) {
        report.title = std::move(title);
        for (const int device : context.matrix.users_of(context.owner)) {
            if (device != context.owner) {
                users.push_back(device);
            }
        }
    }

    void line(std::string text) { report.lines.push_back(std::move(text)); }
    void expect(bool right, const std::string& text) {
        line(fmt::format("{}{}", right ? "" : "WRONG: ", text));
        report.right = report.right && right;
    }
    void expect_access(int device, CUmemAccess_flags wanted) {
        const CUmemAccess_flags flags = access_of(buffer.base(), device);
        expect(flags == wanted,
               fmt::format("cuMemGetAccess(device {}) says {}", device, name_of(flags)));
    }

    std::size_t words() const { return context.bytes / sizeof(std::uint32_t); }
    const Gpu& gpu(int device) const { return context.gpus[static_cast<std::size_t>(device)]; }
    void write(int device, std::uint32_t seed) const {
        pattern::fill(gpu(device), {buffer.base(), words(), seed});
    }
    pattern::Result read(int device, std::uint32_t seed) const {
        return pattern::compare(gpu(device), {buffer.base(), words(), seed});
    }
    /// Each of these devices in turn writes data of its own, and each of them reads it. Returns the
    /// seed of the last data.
    std::uint32_t use(std::span<const int> devices) {
        for (const int writer : devices) {
            ++seed;
            write(writer, seed);
            for (const int reader : devices) {
                const pattern::Result result = read(reader, seed);
                if (!result.right()) {
                    expect(false, fmt::format("device {} wrote, device {} read: {}", writer, reader,
                                              result.describe()));
                }
            }
        }
        line(fmt::format("devices {}: each wrote {} bytes, and all of them read these",
                         fmt::join(devices, " "), context.bytes));
        return seed;
    }

    const StepContext& context;
    StepReport report;
    std::vector<int> users{context.owner};  // the owner first, then its peers
    std::uint32_t seed = 0;
    MappedMemory buffer;
    Drained drained;  // after the buffer: see there
};

double microseconds_of(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
        .count();
}

}  // namespace

StepReport all_at_once(const StepContext& context) {
    Step step(context, device_memory(context.owner), "access for all users in one call");
    const MappedMemory& buffer = step.buffer;
    step.line(fmt::format("{} bytes of device {} mapped at {:#x}", buffer.size(), context.owner,
                          buffer.base()));
    step.expect_access(context.owner, kNone);  // not even the owner has access at first
    allow(buffer.base(), buffer.size(), step.users);
    step.line(fmt::format("cuMemSetAccess(devices {}, read/write)", fmt::join(step.users, " ")));
    for (const int device : step.users) {
        step.expect_access(device, kReadWrite);
    }
    step.use(step.users);
    return std::move(step.report);
}

StepReport one_by_one(const StepContext& context) {
    Step step(context, device_memory(context.owner), "access for one device at a time");
    const MappedMemory other(device_memory(context.owner), context.bytes);
    const double once_us = microseconds_of([&] { allow(other.base(), other.size(), step.users); });
    const double each_us = microseconds_of(
        [&] { allow_one_by_one(step.buffer.base(), step.buffer.size(), step.users); });
    step.line(fmt::format("one call for {} devices {:.1f} us, {} calls {:.1f} us{}",
                          step.users.size(), once_us, step.users.size(), each_us,
                          is_emulated() ? " (emulated: the times mean nothing)" : ""));
    for (const int device : step.users) {
        step.expect_access(device, kReadWrite);
    }
    step.use(step.users);
    return std::move(step.report);
}

StepReport read_only(const StepContext& context) {
    Step step(context, device_memory(context.owner), "read-only");
    const int reader = step.users.back();
    allow(step.buffer.base(), step.buffer.size(), step.users);
    step.write(context.owner, 1);
    if (const auto refused = refusal({CUDA_ERROR_NOT_SUPPORTED}, [&] {
            allow(step.buffer.base(), step.buffer.size(), std::span(&reader, 1),
                  CU_MEM_ACCESS_FLAGS_PROT_READ);
        })) {
        step.line(fmt::format("this driver has no read-only access: {}", refused->what()));
        return std::move(step.report);
    }
    step.expect_access(reader, CU_MEM_ACCESS_FLAGS_PROT_READ);
    const pattern::Result result = step.read(reader, 1);
    step.expect(result.right(), fmt::format("device {} reads what device {} wrote: {}", reader,
                                            context.owner, result.describe()));
    return std::move(step.report);
}

StepReport added_later(const StepContext& context) {
    Step step(context, device_memory(context.owner), "access added later");
    const MappedMemory& buffer = step.buffer;
    const int added = step.users.back();
    const std::span<const int> first(step.users.data(), step.users.size() - 1);
    if (first.empty()) {
        step.line("only one device: nobody used the buffer before");
        allow(buffer.base(), buffer.size(), step.users);
    } else {
        allow(buffer.base(), buffer.size(), first);
        const std::uint32_t seed = step.use(first);
        step.expect_access(added, kNone);
        allow(buffer.base(), buffer.size(), std::span(&added, 1));
        // The call named one device. The others keep their rights, and the memory its data.
        step.expect_access(first.front(), kReadWrite);
        const pattern::Result result = step.read(added, seed);
        step.expect(result.right(), fmt::format("device {} reads what was written before: {}",
                                                added, result.describe()));
    }
    step.expect_access(added, kReadWrite);
    step.use(step.users);
    return std::move(step.report);
}

StepReport taken_away(const StepContext& context) {
    Step step(context, device_memory(context.owner), "access taken away");
    const int removed = step.users.back();
    allow(step.buffer.base(), step.buffer.size(), step.users);
    step.use(step.users);
    forbid(step.buffer.base(), step.buffer.size(), std::span(&removed, 1));
    step.line(fmt::format("cuMemSetAccess(device {}, none)", removed));
    step.expect_access(removed, kNone);
    if (step.users.size() > 1) {
        step.use(std::span<const int>(step.users.data(), step.users.size() - 1));
    }
    return std::move(step.report);
}

StepReport host_access(const StepContext& context) {
    const int node = host_node_of(context.owner);
    Step step(context, host_numa_memory(node), "memory of the host, for the host and all devices");
    const MappedMemory& buffer = step.buffer;
    step.line(fmt::format("{} bytes of the host's NUMA node {} mapped at {:#x}", buffer.size(),
                          node, buffer.base()));
    allow_host(buffer.base(), buffer.size(), node);
    std::vector<int> devices;
    for (const Gpu& gpu : context.gpus) {
        devices.push_back(gpu.ordinal());
    }
    allow(buffer.base(), buffer.size(), devices);
    const CUmemAccess_flags rights = host_access_of(buffer.base(), node);
    step.expect(rights == kReadWrite, fmt::format("cuMemGetAccess(host) says {}", name_of(rights)));
    auto* words = buffer.as<std::uint32_t>();
    for (const int device : devices) {
        const std::uint32_t seed = 2 * static_cast<std::uint32_t>(device);
        for (std::size_t i = 0; i < step.words(); ++i) {
            words[i] = pattern::word(seed, i);
        }
        const pattern::Result seen = step.read(device, seed);
        step.expect(seen.right(), fmt::format("the processor wrote, device {} read: {}", device,
                                              seen.describe()));
        step.write(device, seed + 1);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < step.words(); ++i) {
            wrong += words[i] != pattern::word(seed + 1, i);
        }
        step.expect(wrong == 0, fmt::format("device {} wrote, the processor read: {} words wrong",
                                            device, wrong));
    }

    // The results that drivers refuse with, as the conformance suite found them.
    const MappedMemory of_device(device_memory(context.owner), context.bytes);
    const auto refused =
        refusal({CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_DEVICE},
                [&] { allow_host(of_device.base(), of_device.size(), node); });
    step.line(refused ? fmt::format("host access to device memory: refused, {}",
                                    name_of(refused->result()))
                      : "host access to device memory: granted (a coherent link)");
    return std::move(step.report);
}

StepReport written_by_all(const StepContext& context) {
    Step step(context, device_memory(context.owner), "one buffer that every user writes and reads");
    allow(step.buffer.base(), step.buffer.size(), step.users);
    const std::size_t each = step.words() / step.users.size();
    const auto part = [&](std::size_t i) {
        const std::size_t first = i * each;
        return pattern::Range{step.buffer.base() + first * sizeof(std::uint32_t),
                              i + 1 == step.users.size() ? step.words() - first : each,
                              static_cast<std::uint32_t>(step.users[i]), first};
    };
    // All write at the same time, each its own part. Nobody reads before all have written.
    for (std::size_t i = 0; i < step.users.size(); ++i) {
        pattern::queue_fill(step.gpu(step.users[i]), part(i));
    }
    for (const int writer : step.users) {
        step.gpu(writer).wait(fmt::format("the part of device {}", writer));
    }
    for (const int reader : step.users) {
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < step.users.size(); ++i) {
            wrong += pattern::compare(step.gpu(reader), part(i)).wrong;
        }
        step.expect(wrong == 0,
                    fmt::format("device {} wrote its part and read all {} words: {} wrong", reader,
                                step.words(), wrong));
    }
    return std::move(step.report);
}

bool run_access_steps(const StepContext& context,
                      const std::function<void(const StepReport&)>& tell) {
    bool right = true;
    for (const auto step : {all_at_once, one_by_one, read_only, added_later, taken_away,
                            host_access, written_by_all}) {
        const StepReport report = step(context);
        right = right && report.right;
        tell(report);
    }
    return right;
}

}  // namespace symm
