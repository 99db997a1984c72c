#include "tools/compare/nccl_device.hpp"

#include <fmt/core.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#ifdef SYMM_NCCL_DEVICE

#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "tools/compare/nccl_two_shot.hpp"

namespace symm {
namespace {

constexpr Types kTypes = Types::kFloatAndBfloat16;
constexpr auto kKernel = []<class T, int kMost>(const NcclTwoShotParams& call) {
    return NcclTwoShot<T, kMost>{call};
};

/// A rank's ncclDevComm.
struct DeviceCommunicator {
    NcclCommunicator& nccl;
    ncclDevComm comm{};

    DeviceCommunicator(NcclCommunicator& of, unsigned blocks) : nccl(of) {
#ifdef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER
        ncclDevCommRequirements wanted = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
#else
        ncclDevCommRequirements wanted{};  // NCCL 2.28
#endif
        wanted.lsaBarrierCount = static_cast<int>(blocks);
        wanted.lsaMultimem = false;
        nccl.create_device_communicator(&wanted, &comm);
    }
    DeviceCommunicator(const DeviceCommunicator&) = delete;
    ~DeviceCommunicator() {
        // After an exception, ncclCommAbort does this: kernels may still wait in its barriers.
        if (std::uncaught_exceptions() == 0) {
            nccl.destroy_device_communicator(&comm);
        }
    }
};

}  // namespace

NcclDeviceCall nccl_device_call(NcclCommunicator& nccl, const NcclDeviceOptions& options) {
    // The structures that NCCL's kernels and host functions share differ between versions.
    const std::string headers = fmt::format("{}.{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
    if (headers != nccl.version()) {
        throw std::runtime_error(
            fmt::format("built with the headers of NCCL {}, not {}", headers, nccl.version()));
    }
    const LaunchShape& most = options.most;
    if (options.type != DataType::kFloat && options.type != DataType::kBfloat16) {
        throw std::runtime_error("its kernel is compiled for float and bfloat16 only");
    }
    if (resident_blocks_for<NcclTwoShotParams, kTypes>(options.type, options.ranks, most.threads,
                                                       kKernel) < most.blocks) {
        throw std::runtime_error(
            fmt::format("the device cannot keep {} blocks of its kernel resident", most.blocks));
    }
    auto device = std::make_shared<DeviceCommunicator>(nccl, most.blocks);
    if (const int reached = device->comm.lsaSize; reached != options.ranks) {
        device.reset();
        throw std::runtime_error(fmt::format("only {} of {} ranks reach each other's memory (LSA)",
                                             reached, options.ranks));
    }
    return [device, options](CUstream stream, LaunchShape shape, std::size_t count, bool in_place) {
        const NcclTwoShotParams call{
            static_cast<ncclWindow_t>(options.in),
            static_cast<ncclWindow_t>(in_place ? options.in : options.out), count,
            Reduction(options.op, options.ranks, is_signed_integer(options.type)), device->comm};
        launch_for<kTypes>(stream, shape, options.type, options.ranks, call, kKernel);
    };
}

}  // namespace symm

#else

namespace symm {

NcclDeviceCall nccl_device_call(NcclCommunicator& /*nccl*/, const NcclDeviceOptions& /*options*/) {
    throw std::runtime_error("built without NCCL's headers (see tools/compare/README.md)");
}

}  // namespace symm

#endif
