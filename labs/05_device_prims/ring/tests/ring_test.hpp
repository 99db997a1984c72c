#pragma once
/// \file
/// Shared by the tests of rings: one rank's side of a checked call.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/ranks.hpp"
#include "common/tests/needs.hpp"
#include "common/tests/text_thrown_by.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/05_device_prims/reduction/exact_reference.hpp"
#include "labs/05_device_prims/ring/ring_communicator.hpp"

namespace symm::testing {

/// The stream of a rank, for the whole process. With a new stream per test, a rank's first kernel
/// now and then did not start before the kernel of another rank on the same GPU, which waited for
/// it, had given up (docs/DESIGN.md).
inline const Stream& stream_of(const Rank& rank) {
    struct Kept {
        explicit Kept(int ordinal) : device(ordinal), word(4) {
            // No kernel of another rank waits yet.
            cu_check(cuMemsetD8Async(word.address(), 0, 4, stream.get()), "cuMemsetD8Async()");
            stream.synchronize("the first work");
        }
        Device device;      // keeps the context
        DeviceMemory word;  // kept, since freeing it would wait for other ranks' kernels
        Stream stream;
    };
    static std::mutex mutex;
    static auto& all = *new std::map<std::pair<int, int>, Kept>;  // never destroyed
    const std::lock_guard lock(mutex);
    return all.try_emplace({rank.device(), rank.rank()}, rank.device()).first->second.stream;
}

/// One rank's side of checked calls.
class RingSide {
public:
    static constexpr std::size_t kMostBytes = 64 * 1024;  ///< An input or an output has no more.
    static constexpr std::size_t kGuard = 256;            ///< Bytes before and after the output.

    explicit RingSide(Rank& rank, const RingOptions& options = {})
        : rank_(rank),
          stream_(stream_of(rank)),
          ring(rank, options),
          input_(kMostBytes),
          window_(rank, kMostBytes) {}

    struct Shape {
        Collective collective = Collective::kAllReduce;
        Protocol protocol = Protocol::kSimple;
        DataType type = DataType::kFloat;
        ReduceOp op = ReduceOp::kSum;
        std::size_t count = 0;
        int root = 0;
        bool in_place = false;
        bool direct = false;
        std::size_t shift = 0;  ///< Elements by which the buffers begin later.
    };

    /// Fills the input, poisons the output, makes the call and checks every byte of the output.
    void check(const Shape& shape, int launches = 1) {
        with_type(shape.type, [&](auto zero) { check_as<decltype(zero)>(shape, launches); });
    }

private:
    template <class T>
    void check_as(const Shape& shape, int launches) {
        const auto me = static_cast<std::size_t>(rank_.rank());
        const bool gathers = shape.collective == Collective::kAllGather;
        const bool scatters = shape.collective == Collective::kReduceScatter;
        const CheckedCall reference{shape.collective, shape.op,     shape.count,
                                    shape.root,       rank_.size(), ++salt_};
        const std::size_t begin = kGuard + shape.shift * sizeof(T);

        std::vector<T> in(reference.input_count());
        for (std::size_t i = 0; i < in.size(); ++i) {
            in[i] = reference.input<T>(rank_.rank(), i);
        }
        RingRequest call{shape.collective, shape.protocol, shape.type, shape.op};
        call.count = shape.count;
        call.root = shape.root;
        call.output = window_.local() + begin;
        call.input = input_.address() + begin;
        if (shape.in_place) {
            call.input = call.output + (gathers ? me * shape.count * sizeof(T) : 0);
            if (scatters) {  // the output is this rank's part of the input
                call.output += me * shape.count * sizeof(T);
            }
        }
        if (shape.direct) {
            call.next_output =
                window_.peer((rank_.rank() + 1) % rank_.size()) + (call.output - window_.local());
        }
        const std::vector<std::byte> poison(kMostBytes, std::byte{0xa5});
        copy_to_device(window_.local(), poison.data(), poison.size());
        copy_to_device(call.input, in.data(), in.size() * sizeof(T));
        std::vector<std::byte> before(kMostBytes);
        copy_to_host(before.data(), window_.local(), before.size());
        for (int i = 0; i < launches; ++i) {
            ring.queue(call, stream_.get());
        }
        ring.synchronize(stream_, "the collective");

        std::vector<std::byte> expected = before;
        for (std::size_t i = 0; reference.writes(rank_.rank()) && i < reference.output_count();
             ++i) {
            const T value = reference.output<T>(rank_.rank(), i);
            std::memcpy(&expected[call.output - window_.local() + i * sizeof(T)], &value,
                        sizeof(T));
        }
        std::vector<std::byte> after(kMostBytes);
        copy_to_host(after.data(), window_.local(), after.size());
        const auto wrong = std::mismatch(after.begin(), after.end(), expected.begin());
        if (wrong.first != after.end()) {
            const auto at = static_cast<std::size_t>(wrong.first - after.begin());
            ADD_FAILURE() << fmt::format(
                "{} by {}, {}, {}, {} elements, root {}{}{}: rank {} of {} has a wrong byte at {} "
                "(output at {}): {} instead of {}",
                name_of(shape.collective), name_of(shape.protocol), name_of(shape.type),
                name_of(shape.op), shape.count, shape.root, shape.in_place ? ", in place" : "",
                shape.direct ? ", direct" : "", rank_.rank(), rank_.size(), at,
                call.output - window_.local(), static_cast<int>(after[at]),
                static_cast<int>(expected[at]));
        }
    }

    Rank& rank_;
    const Stream& stream_;

public:
    RingCommunicator ring;

private:
    DeviceMemory input_;
    SymmetricRange window_;
    std::uint32_t salt_ = 0;
};

}  // namespace symm::testing
