#include "labs/02_access/access_steps.hpp"

#include <fmt/format.h>

#include <chrono>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/pattern/pattern.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"
#include "labs/02_access/kernels.hpp"
#include "labs/02_access/shared_buffer.hpp"

namespace symm {
namespace {

/// Mapped device memory that nobody may touch yet: lab 01's steps without the last.
struct ClosedBuffer {
    PhysicalMemory memory;
    AddressRange range;
    Mapping mapping;

    ClosedBuffer(int owner, std::size_t bytes) {
        const CUmemAllocationProp properties = device_memory(owner);
        const std::size_t rounded = round_up(bytes, granularity(properties));
        memory = PhysicalMemory::create(properties, rounded);
        range = AddressRange(rounded);
        mapping = Mapping(range.base(), rounded, memory);
    }
    CUdeviceptr base() const { return mapping.address(); }
    std::size_t size() const { return mapping.size(); }
};

/// Collects a step's lines and whether everything was as it has to be.
class Notes {
public:
    explicit Notes(std::string title) { report_.title = std::move(title); }
    void line(std::string text) { report_.lines.push_back(std::move(text)); }
    void expect(bool right, std::string text) {
        line(fmt::format("{}{}", right ? "" : "WRONG: ", text));
        report_.right = report_.right && right;
    }
    StepReport report() && { return std::move(report_); }

private:
    StepReport report_;
};

const Gpu& gpu_of(const StepContext& context, int device) {
    return context.gpus[static_cast<std::size_t>(device)];
}

std::uint32_t seed_of(int device, std::uint32_t round) {
    return 0x1000u * (round + 1) + static_cast<std::uint32_t>(device);
}

pattern::Range range_at(const StepContext& context, CUdeviceptr at, std::uint32_t seed) {
    return {at, context.bytes / sizeof(std::uint32_t), seed};
}

void store(const StepContext& context, int device, CUdeviceptr at, std::uint32_t seed) {
    const Gpu& gpu = gpu_of(context, device);
    pattern::fill(gpu, range_at(context, at, seed));
}

pattern::Result compare(const StepContext& context, int device, CUdeviceptr at,
                        std::uint32_t seed) {
    return pattern::compare(gpu_of(context, device), range_at(context, at, seed));
}

/// Each user in turn stores data of its own, and every other user reads it.
void use(const StepContext& context, const std::vector<int>& users, CUdeviceptr at,
         std::uint32_t round, Notes& notes) {
    for (const int writer : users) {
        store(context, writer, at, seed_of(writer, round));
        for (const int reader : users) {
            const pattern::Result verdict = compare(context, reader, at, seed_of(writer, round));
            if (!verdict.right()) {
                notes.expect(false, fmt::format("device {} wrote, device {} read: {}", writer,
                                                reader, verdict.describe()));
            }
        }
    }
    notes.line(fmt::format("devices {}: each wrote {} bytes, and all read them",
                           fmt::join(users, " "), context.bytes));
}

void expect_access(Notes& notes, CUdeviceptr at, int device, CUmemAccess_flags wanted) {
    const CUmemAccess_flags flags = access_of(at, device);
    notes.expect(flags == wanted,
                 fmt::format("cuMemGetAccess(device {}) says {}", device, words(flags)));
}

/// The devices whose data may go both ways, the owner first: in these steps each of them writes,
/// and all of them read. The owner alone where it has no peer.
std::vector<int> users_of(const StepContext& context) {
    std::vector<int> users{context.owner};
    for (const int device : context.matrix.users_of(context.owner)) {
        if (device != context.owner) {
            users.push_back(device);
        }
    }
    return users;
}

double microseconds_of(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
        .count();
}

}  // namespace

StepReport all_at_once(const StepContext& context) {
    Notes notes("access for all devices in one call");
    const std::vector<int> users = users_of(context);
    const ClosedBuffer buffer(context.owner, context.bytes);
    const Drained drained(context.gpus);
    notes.line(fmt::format("{} bytes of device {} mapped at {:#x}", buffer.size(), context.owner,
                           buffer.base()));
    // Even the owner is a stranger at first.
    expect_access(notes, buffer.base(), context.owner, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    allow(buffer.base(), buffer.size(), users);
    notes.line(fmt::format("cuMemSetAccess(devices {}, read/write)", fmt::join(users, " ")));
    for (const int device : users) {
        expect_access(notes, buffer.base(), device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
    use(context, users, buffer.base(), 0, notes);
    return std::move(notes).report();
}

StepReport one_by_one(const StepContext& context) {
    Notes notes("access one device at a time");
    const std::vector<int> users = users_of(context);
    const ClosedBuffer once(context.owner, context.bytes);
    const ClosedBuffer each(context.owner, context.bytes);
    const Drained drained(context.gpus);
    const double once_us = microseconds_of([&] { allow(once.base(), once.size(), users); });
    const double each_us =
        microseconds_of([&] { allow_one_by_one(each.base(), each.size(), users); });
    notes.line(fmt::format("one call for {} devices {:.1f} us, {} calls {:.1f} us{}", users.size(),
                           once_us, users.size(), each_us,
                           is_emulated() ? " (emulated: the times mean nothing)" : ""));
    for (const int device : users) {
        expect_access(notes, each.base(), device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
    use(context, users, each.base(), 1, notes);
    return std::move(notes).report();
}

StepReport read_only(const StepContext& context) {
    Notes notes("read-only");
    const std::vector<int> users = users_of(context);
    const int guest = users.back();
    const ClosedBuffer buffer(context.owner, context.bytes);
    const Drained drained(context.gpus);
    allow(buffer.base(), buffer.size(), users);
    store(context, context.owner, buffer.base(), seed_of(context.owner, 2));
    if (const auto refused = refusal({CUDA_ERROR_NOT_SUPPORTED}, [&] {
            allow(buffer.base(), buffer.size(), std::span(&guest, 1),
                  CU_MEM_ACCESS_FLAGS_PROT_READ);
        })) {
        notes.line(fmt::format("this driver has no read-only access: {}", refused->what()));
        return std::move(notes).report();
    }
    expect_access(notes, buffer.base(), guest, CU_MEM_ACCESS_FLAGS_PROT_READ);
    const pattern::Result verdict =
        compare(context, guest, buffer.base(), seed_of(context.owner, 2));
    notes.expect(verdict.right(), fmt::format("device {} reads what device {} wrote: {}", guest,
                                              context.owner, verdict.describe()));
    return std::move(notes).report();
}

StepReport added_later(const StepContext& context) {
    Notes notes("access added later");
    const std::vector<int> users = users_of(context);
    const int guest = users.back();
    const std::vector<int> first(users.begin(), users.end() - 1);
    const ClosedBuffer buffer(context.owner, context.bytes);
    const Drained drained(context.gpus);
    std::uint32_t seed = seed_of(context.owner, 3);
    if (first
            .empty()) {  // one device alone: it is its own guest, and nothing can be written before
        notes.line("only one device: nobody used the buffer before");
    } else {
        allow(buffer.base(), buffer.size(), first);
        use(context, first, buffer.base(), 3, notes);
        seed = seed_of(first.back(), 3);
        expect_access(notes, buffer.base(), guest, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    }
    allow(buffer.base(), buffer.size(), std::span(&guest, 1));
    expect_access(notes, buffer.base(), guest, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    if (!first.empty()) {
        // The call named the guest only; the others keep their rights, the memory its data.
        expect_access(notes, buffer.base(), first.front(), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        const pattern::Result verdict = compare(context, guest, buffer.base(), seed);
        notes.expect(verdict.right(),
                     fmt::format("device {} finds what was written before it came: {}", guest,
                                 verdict.describe()));
    }
    use(context, users, buffer.base(), 4, notes);
    return std::move(notes).report();
}

StepReport taken_away(const StepContext& context) {
    Notes notes("access taken away");
    const std::vector<int> users = users_of(context);
    const int guest = users.back();
    const ClosedBuffer buffer(context.owner, context.bytes);
    const Drained drained(context.gpus);
    allow(buffer.base(), buffer.size(), users);
    use(context, users, buffer.base(), 5, notes);
    forbid(buffer.base(), buffer.size(), std::span(&guest, 1));
    notes.line(fmt::format("cuMemSetAccess(device {}, none)", guest));
    expect_access(notes, buffer.base(), guest, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    const std::vector<int> rest(users.begin(), users.end() - 1);
    if (!rest.empty()) {
        use(context, rest, buffer.base(), 6, notes);
    }
    return std::move(notes).report();
}

StepReport host_access(const StepContext& context) {
    Notes notes("host and devices on host-NUMA memory");
    const int node = host_node_of(context.owner);
    const HostNumaBuffer buffer(node, context.bytes);
    const Drained drained(context.gpus);
    const std::size_t count = context.bytes / sizeof(std::uint32_t);
    std::vector<int> devices;
    for (const Gpu& gpu : context.gpus) {
        devices.push_back(gpu.ordinal());
    }
    notes.line(fmt::format("{} bytes of the host's NUMA node {} mapped at {:#x}", buffer.size(),
                           node, buffer.base()));
    allow_host(buffer.base(), buffer.size(), node);
    allow(buffer.base(), buffer.size(), devices);
    notes.expect(
        host_access_of(buffer.base(), node) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        fmt::format("cuMemGetAccess(host) says {}", words(host_access_of(buffer.base(), node))));
    auto* words_of_host = buffer.as<std::uint32_t>();
    for (const int device : devices) {
        for (std::size_t i = 0; i < count; ++i) {
            words_of_host[i] = pattern::word(seed_of(device, 7), i);
        }
        const pattern::Result seen = compare(context, device, buffer.base(), seed_of(device, 7));
        notes.expect(seen.right(), fmt::format("the processor wrote, device {} read: {}", device,
                                               seen.describe()));
        store(context, device, buffer.base(), seed_of(device, 8));
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) {
            wrong += words_of_host[i] != pattern::word(seed_of(device, 8), i);
        }
        notes.expect(wrong == 0,
                     fmt::format("device {} wrote, the processor read: {} wrong", device, wrong));
    }

    // Not the other way round: device memory is not for the processor.
    const ClosedBuffer of_device(context.owner, context.bytes);
    const auto refused =
        refusal({CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_DEVICE},
                [&] { allow_host(of_device.base(), of_device.size(), node); });
    notes.line(
        refused ? fmt::format("device memory for the host: refused, {}", name_of(refused->result()))
                : "this machine's processor may even read device memory (a coherent link)");
    return std::move(notes).report();
}

bool run_access_steps(const StepContext& context,
                      const std::function<void(const StepReport&)>& tell) {
    bool right = true;
    for (const auto step :
         {all_at_once, one_by_one, read_only, added_later, taken_away, host_access}) {
        const StepReport report = step(context);
        right = right && report.right;
        tell(report);
    }
    return right;
}

}  // namespace symm
