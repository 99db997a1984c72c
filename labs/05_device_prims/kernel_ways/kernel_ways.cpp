#include "labs/05_device_prims/kernel_ways/kernel_ways.hpp"

#include <fmt/core.h>

#include <stdexcept>
#include <vector>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"

namespace symm {
namespace {

// Between them lies half of all numbers, so that each operation has to look at its input.
constexpr std::uint32_t kA = 0x40000001;
constexpr std::uint32_t kB = 0xc0000003;
constexpr unsigned char kPoison = 0xee;

std::uint32_t input(std::size_t i) {
    return static_cast<std::uint32_t>(i + 1) * 2654435761U;  // odd: no two are equal
}

}  // namespace

PtxLibrary::PtxLibrary(const char* ptx) {
    cu_check(cuLibraryLoadData(&value_, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0),
             "cuLibraryLoadData()");
}

CUfunction PtxLibrary::function(const std::string& name) const {
    CUkernel kernel = nullptr;  // belongs to no context
    CUfunction function = nullptr;
    cu_check(cuLibraryGetKernel(&kernel, value_, name.c_str()), "cuLibraryGetKernel({})", name);
    cu_check(cuKernelGetFunction(&function, kernel), "cuKernelGetFunction({})", name);
    return function;
}

void PtxLibrary::give_back(CUlibrary library) {
    cu_check(cuLibraryUnload(library), "cuLibraryUnload()");
}

KernelTrial::KernelTrial(const Gpu& gpu, std::size_t count)
    : gpu_(gpu),
      count_(count),
      in_((count + 1) * sizeof(std::uint32_t)),
      out_((count + 1) * sizeof(std::uint32_t)) {
    std::vector<std::uint32_t> numbers(count + 1);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = input(i);
    }
    copy_to_device(in_.address(), numbers.data(), in_.size());
    poison();
}

void KernelTrial::run(CUfunction function, std::uint32_t index) const {
    if (index >= kOperationCount) {
        throw std::invalid_argument(
            fmt::format("the table has {} functions, none at {}", kOperationCount, index));
    }
    Numbers numbers{in_.as<const std::uint32_t>(), out_.as<std::uint32_t>(), count_};
    std::uint32_t a = kA;
    std::uint32_t b = kB;
    // An address for each parameter of the kernel. The driver knows how many there are and how
    // large each is, and copies them now: kernels without a table take the first three.
    void* parameters[] = {&numbers, &a, &b, &index};
    const auto [blocks, threads] = gpu_.shape();
    cu_check(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, gpu_.stream(), parameters,
                            nullptr),
             "cuLaunchKernel(blocks={}, threads={})", blocks, threads);
    gpu_.wait("the kernel");
}

void KernelTrial::poison() const {
    cu_check(cuMemsetD8Async(out_.address(), kPoison, out_.size(), gpu_.stream()),
             "cuMemsetD8Async(count={})", out_.size());
    gpu_.wait("the poison");
}

void KernelTrial::check(std::uint32_t index) const {
    std::vector<std::uint32_t> results(count_ + 1);
    copy_to_host(results.data(), out_.address(), out_.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
        const std::uint32_t expected =
            i < count_ ? kOperations[index](input(i), kA, kB) : kPoison * 0x01010101U;
        if (results[i] != expected) {
            throw std::runtime_error(fmt::format("{}: number {} of {} is {}, expected {}",
                                                 kOperationNames[index], i, count_, results[i],
                                                 expected));
        }
    }
}

}  // namespace symm
