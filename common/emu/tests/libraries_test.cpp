// PTX and host twins on the emulated driver: what it reads, refuses and runs.

#include "common/emu/errors.hpp"
#include "common/emu/kernels/host_twin.hpp"
#include "common/emu/kernels/ptx.hpp"
#include "common/emu/tests/support.hpp"

namespace symm::emu {
namespace {

using Names = std::vector<std::string>;

constexpr char kPtx[] = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry emu_test_add(.param .u64 to, .param .u32 number) { ret; }
.visible .entry emu_test_without_twin() { ret; }
)";

void add(const simt::ThreadBlock& block, unsigned* to, unsigned number) {
    to[block.grid_rank()] += number;
}

CUresult load_ptx(CUlibrary& library, const void* code) {
    return cuLibraryLoadData(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

CUresult launch(CUfunction function, void** parameters, void** extra = nullptr) {
    return cuLaunchKernel(function, 2, 1, 1, 3, 1, 1, 0, nullptr, parameters, extra);
}

class PtxLibraries : public EmulatedDriver {
protected:
    void SetUp() override {
        add_host_twin("emu_test_add", &add);
        ASSERT_OK(load_ptx(library_, kPtx));
        EXPECT_EQ(inventory()["libraries"], 1u);
        ASSERT_OK(cuLibraryGetKernel(&kernel_, library_, "emu_test_add"));
        ASSERT_OK(cuKernelGetFunction(&function_, kernel_));
    }
    void unload() { EXPECT_OK(cuLibraryUnload(library_)); }

    CUlibrary library_ = nullptr;
    CUkernel kernel_ = nullptr;
    CUfunction function_ = nullptr;
};

TEST(PtxEntries, AreFoundWhateverStandsBeforeThem) {
    EXPECT_EQ(entries_of(".version 8.0 .target sm_75, debug\n"
                         ".visible .entry first(.param .u32 x){ret;}\n"
                         ".weak\n.entry\n$second_2\n(.param .u32 x) {ret;}\n"
                         ".entry third{ret;}"),
              (Names{"first", "$second_2", "third"}));
}

TEST(PtxEntries, AreNotFoundInCommentsStringsOrFunctions) {
    EXPECT_EQ(
        entries_of("// Made by .entry a(\n/* .version 1 .entry b */ .version 8.0\n.target sm_75\n"
                   ".file 1 \"/tmp/ .entry c\"\n.func d() {ret;}\n.entry /* e */ f // g\n() {}"),
        (Names{"f"}));
    EXPECT_EQ(entries_of(".version 8.0 .target sm_75 // .entry a"), Names{});
}

TEST(PtxEntries, AreNotLookedForInOtherText) {
    const auto answer_to = [](const char* text) { return answer([&] { entries_of(text); }); };
    for (const char* text : {"", "hello", "// .version 8.0 .target sm_75", ".target sm_75",
                             "__global__ void f() {}", "/* .version"}) {
        EXPECT_RESULT(answer_to(text), CUDA_ERROR_INVALID_IMAGE) << text;
    }
    for (const char* text :
         {".version 8.0", ".version 8.0 .entry f() {}", ".version 8.0 .target sm_75 .entry",
          ".version 8.0 .target sm_75 .entry (.param .u32 x)",
          ".version 8.0 .target sm_75 .entry .param"}) {
        EXPECT_RESULT(answer_to(text), CUDA_ERROR_INVALID_PTX) << text;
    }
}

TEST_F(PtxLibraries, RunTheHostTwinWithCopiesOfTheParameters) {
    Shared memory(0, {0});
    auto* to = memory.as<unsigned>();
    unsigned number = 7;
    void* parameters[] = {&to, &number};
    EXPECT_OK(launch(function_, parameters));
    number = 100;
    to = nullptr;
    EXPECT_OK(cuCtxSynchronize());
    std::vector<unsigned> read(7);
    EXPECT_OK(cuMemcpyDtoH(read.data(), memory.base(), 7 * sizeof(unsigned)));
    EXPECT_EQ(read, (std::vector<unsigned>{7, 7, 7, 7, 7, 7, 0}));

    EXPECT_INVALID(launch(function_, nullptr));
    EXPECT_INVALID(launch(function_, parameters, parameters));
    unload();
}

TEST_F(PtxLibraries, LeaveNothingToUseWhenUnloaded) {
    unload();
    EXPECT_RESULT(launch(function_, nullptr), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_RESULT(cuKernelGetFunction(&function_, kernel_), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_RESULT(cuLibraryGetKernel(&kernel_, library_, "emu_test_add"),
                  CUDA_ERROR_INVALID_HANDLE);
    EXPECT_RESULT(cuLibraryUnload(library_), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(PtxLibraries, RefuseAKernelWithoutTwinAndSayHowToGiveItOne) {
    CUkernel kernel = nullptr;
    testing::internal::CaptureStderr();
    EXPECT_RESULT(cuLibraryGetKernel(&kernel, library_, "emu_test_without_twin"),
                  CUDA_ERROR_NO_BINARY_FOR_GPU);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("kernel emu_test_without_twin has no host twin"), std::string::npos)
        << said;
    EXPECT_EQ(kernel, nullptr);
    unload();
}

TEST_F(PtxLibraries, TakeNoMachineCodeOfAGpu) {
    CUlibrary library = nullptr;
    for (const char* code : {"\177ELF", "\x50\xed\x55\xba"}) {
        EXPECT_RESULT(load_ptx(library, code), CUDA_ERROR_NO_BINARY_FOR_GPU) << code;
    }
    unload();
}

TEST_F(PtxLibraries, AreNotNeededForKernelsOfTheProgramItself) {
    CUfunction function = nullptr;
    CUfunction again = nullptr;
    ASSERT_OK(get_function_of_twin(&function, "emu_test_add"));
    add_host_twin("emu_test_add", &add);
    ASSERT_OK(get_function_of_twin(&again, "emu_test_add"));
    EXPECT_EQ(function, again);
    EXPECT_RESULT(get_function_of_twin(&again, "emu_test_without_twin"), CUDA_ERROR_NOT_FOUND);
    unload();
}

}  // namespace
}  // namespace symm::emu
