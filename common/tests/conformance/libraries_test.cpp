// Libraries: kernels that are found by name in PTX.

#include "common/emu/kernels/host_twin.hpp"
#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

constexpr char kStorePtx[] = R"(
// .entry in_a_comment
.version 7.0
.target sm_75
.address_size 64

.func not_a_kernel() { ret; }

.visible .entry conformance_store(.param .u64 where, .param .u32 value)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [where];
    ld.param.u32 %r1, [value];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}
)";
constexpr char kKernel[] = "conformance_store";

// Runs on emulated GPUs, which cannot run PTX.
void store(const simt::ThreadBlock&, CUdeviceptr where, unsigned value) {
    *reinterpret_cast<unsigned*>(where) = value;
}

CUresult load(CUlibrary* library, const char* code) {
    return cuLibraryLoadData(library, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

class Libraries : public Driver {
protected:
    void SetUp() override {
        emu::add_host_twin(kKernel, &store);
        ASSERT_OK(load(&library_, kStorePtx));
        ASSERT_OK(cuLibraryGetKernel(&kernel_, library_, kKernel));
        ASSERT_OK(cuKernelGetFunction(&function_, kernel_));
    }
    void TearDown() override { EXPECT_OK(cuLibraryUnload(library_)); }

    // A driver may load lazily: then errors in the code show when a function is requested.
    static CUresult answer_to(const char* code) {
        CUlibrary library = nullptr;
        if (const CUresult loaded = load(&library, code); loaded != CUDA_SUCCESS) {
            return loaded;
        }
        CUkernel kernel = nullptr;
        CUfunction function = nullptr;
        CUresult found = cuLibraryGetKernel(&kernel, library, kKernel);
        if (found == CUDA_SUCCESS) {
            found = cuKernelGetFunction(&function, kernel);
        }
        EXPECT_OK(cuLibraryUnload(library));
        return found;
    }

    CUresult launch(CUfunction function, unsigned value) {
        CUdeviceptr where = memory_.base;
        void* parameters[] = {&where, &value};
        const CUresult result =
            cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
        where = 0;  // the launch has its own copies
        value = 0;
        return result;
    }

    unsigned stored() {
        unsigned value = 0;
        EXPECT_OK(cuStreamSynchronize(nullptr));
        EXPECT_OK(cuMemcpyDtoH(&value, memory_.base, sizeof(value)));
        return value;
    }

    CUlibrary library_ = nullptr;
    CUkernel kernel_ = nullptr;
    CUfunction function_ = nullptr;
    Allocation memory_{sizeof(unsigned)};
};

TEST_F(Libraries, HaveKernelsThatRun) {
    EXPECT_OK(launch(function_, 41));
    EXPECT_EQ(stored(), 41u);
    EXPECT_OK(launch(reinterpret_cast<CUfunction>(kernel_), 42));  // no need to ask for a function
    EXPECT_EQ(stored(), 42u);
}

TEST_F(Libraries, HaveKernelsThatAreLaunchedWithAttributes) {
    CUdeviceptr where = memory_.base;
    unsigned value = 51;
    void* parameters[] = {&where, &value};
    CUlaunchAttribute attributes[2] = {};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[1].value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, nullptr, attributes, 0};
    for (const unsigned count : {0U, 1U, 2U}) {
        config.numAttrs = count;
        value = 51 + count;
        EXPECT_OK(cuLaunchKernelEx(&config, function_, parameters, nullptr));
        EXPECT_EQ(stored(), 51 + count);
    }
    attributes[1].value.programmaticStreamSerializationAllowed = 0;
    EXPECT_OK(cuLaunchKernelEx(&config, function_, parameters, nullptr));
    EXPECT_INVALID(cuLaunchKernelEx(nullptr, function_, parameters, nullptr));
    config.gridDimX = 0;
    EXPECT_INVALID(cuLaunchKernelEx(&config, function_, parameters, nullptr));
    EXPECT_OK(cuStreamSynchronize(nullptr));
}

TEST_F(Libraries, FindTheSameAgain) {
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    EXPECT_OK(cuLibraryGetKernel(&kernel, library_, kKernel));
    EXPECT_OK(cuKernelGetFunction(&function, kernel));
    EXPECT_EQ(kernel, kernel_);
    EXPECT_EQ(function, function_);
}

TEST_F(Libraries, OfTheSameTextAreTwo) {
    CUlibrary second = nullptr;
    CUkernel kernel = nullptr;
    EXPECT_OK(load(&second, kStorePtx));
    EXPECT_NE(second, library_);
    EXPECT_OK(cuLibraryGetKernel(&kernel, second, kKernel));
    EXPECT_NE(kernel, kernel_);
    EXPECT_OK(cuLibraryUnload(second));
    EXPECT_OK(launch(function_, 43));
    EXPECT_EQ(stored(), 43u);
}

TEST_F(Libraries, NeedNoContextUntilAFunctionIsAskedFor) {
    EXPECT_OK(cuCtxSetCurrent(nullptr));
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    EXPECT_OK(load(&library, kStorePtx));
    EXPECT_OK(cuLibraryGetKernel(&kernel, library, kKernel));
    EXPECT_RESULT(cuKernelGetFunction(&function, kernel), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_OK(cuCtxSetCurrent(primary_context()));
    EXPECT_OK(cuKernelGetFunction(&function, kernel));
    EXPECT_OK(cuLibraryUnload(library));
}

TEST_F(Libraries, KnowOnlyTheirEntries) {
    for (const char* name : {"conformance_stor", "not_a_kernel", "in_a_comment", ""}) {
        CUkernel kernel = nullptr;
        EXPECT_RESULT(cuLibraryGetKernel(&kernel, library_, name), CUDA_ERROR_NOT_FOUND) << name;
    }
}

TEST_F(Libraries, AreNotMadeOfOtherTextOrBrokenPtx) {
    EXPECT_RESULT(answer_to("__global__ void conformance_store() {}"), CUDA_ERROR_INVALID_IMAGE);
    EXPECT_RESULT(answer_to(".target sm_75\n.address_size 64\n"), CUDA_ERROR_INVALID_IMAGE);
    EXPECT_RESULT(answer_to(".version 7.0\n.entry conformance_store() { ret; }\n"),
                  CUDA_ERROR_INVALID_PTX);
    EXPECT_RESULT(answer_to(".version 7.0\n.target sm_75\n.address_size 64\n.entry () { ret; }\n"),
                  CUDA_ERROR_INVALID_PTX);
}

TEST_F(Libraries, NeedCodeAndSomewhereToGo) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    EXPECT_INVALID(load(nullptr, kStorePtx));
    EXPECT_INVALID(load(&library, nullptr));
    EXPECT_INVALID(cuLibraryGetKernel(nullptr, library_, kKernel));
    EXPECT_INVALID(cuLibraryGetKernel(&kernel, library_, nullptr));
    EXPECT_INVALID(cuKernelGetFunction(nullptr, kernel_));
}

// Handles of unloaded libraries are not tested: the manual promises no result for them.
TEST_F(Libraries, NullIsNoLibraryAndHasNoKernel) {
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    for (const CUresult result :
         {cuLibraryGetKernel(&kernel, nullptr, kKernel), cuKernelGetFunction(&function, nullptr),
          cuLibraryUnload(nullptr), launch(nullptr, 1)}) {
        EXPECT_RESULT(result, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_VALUE);
    }
}

}  // namespace
}  // namespace symm::conformance
