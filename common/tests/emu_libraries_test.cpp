// PTX and host twins on the emulated driver: what it reads, refuses and runs.

#include "common/emu/host_twin.hpp"
#include "common/emu/launch.hpp"
#include "common/emu/ptx.hpp"
#include "common/tests/emu_support.hpp"

namespace symm::emu {
namespace {

using Names = std::vector<std::string>;
using Libraries = EmulatedDriver;

constexpr char kPtx[] = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry emu_test_add(.param .u64 to, .param .u32 number) { ret; }
.visible .entry emu_test_without_twin() { ret; }
)";

Names entries(std::string_view ptx) {
    Names names;
    EXPECT_EQ(entries_of(ptx, names), CUDA_SUCCESS);
    return names;
}

CUresult answer_to(std::string_view ptx) {
    Names names;
    return entries_of(ptx, names);
}

void add(const simt::ThreadBlock& block, unsigned* to, unsigned number) {
    to[block.grid_rank()] += number;
}

CUresult load(CUlibrary& library, const void* code) {
    return emu::cuLibraryLoadData(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

CUresult launch(CUfunction function, void** parameters, void** extra = nullptr) {
    return emu::cuLaunchKernel(function, 2, 1, 1, 3, 1, 1, 0, nullptr, parameters, extra);
}

TEST(PtxEntries, AreFoundWhateverStandsBeforeThem) {
    EXPECT_EQ(entries(".version 8.0 .target sm_75, debug\n"
                      ".visible .entry first(.param .u32 x){ret;}\n"
                      ".weak\n.entry\n$second_2\n(.param .u32 x) {ret;}\n"
                      ".entry third{ret;}"),
              (Names{"first", "$second_2", "third"}));
}

TEST(PtxEntries, AreNotFoundInCommentsStringsOrFunctions) {
    EXPECT_EQ(
        entries("// Made by .entry a(\n/* .version 1 .entry b */ .version 8.0\n.target sm_75\n"
                ".file 1 \"/tmp/ .entry c\"\n.func d() {ret;}\n.entry /* e */ f // g\n() {}"),
        (Names{"f"}));
    EXPECT_EQ(entries(".version 8.0 .target sm_75 // .entry a"), Names{});
}

TEST(PtxEntries, AreNotLookedForInOtherText) {
    for (const char* text : {"", "hello", "// .version 8.0 .target sm_75", ".target sm_75",
                             "__global__ void f() {}", "/* .version"}) {
        EXPECT_EQ(answer_to(text), CUDA_ERROR_INVALID_IMAGE) << text;
    }
    for (const char* text :
         {".version 8.0", ".version 8.0 .entry f() {}", ".version 8.0 .target sm_75 .entry",
          ".version 8.0 .target sm_75 .entry (.param .u32 x)",
          ".version 8.0 .target sm_75 .entry .param"}) {
        EXPECT_EQ(answer_to(text), CUDA_ERROR_INVALID_PTX) << text;
    }
}

TEST_F(Libraries, RunTheHostTwinWithCopiesOfTheParameters) {
    add_host_twin("emu_test_add", kHostTwin<&add>);
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    ASSERT_EQ(load(library, kPtx), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuLibraryGetKernel(&kernel, library, "emu_test_add"), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);

    Mapped memory(kBlock);
    ASSERT_EQ(memory.allow_devices(1), CUDA_SUCCESS);
    auto* to = memory.as<unsigned>();
    unsigned number = 7;
    void* parameters[] = {&to, &number};
    EXPECT_EQ(launch(function, parameters), CUDA_SUCCESS);
    number = 100;
    to = nullptr;
    EXPECT_EQ(emu::cuCtxSynchronize(), CUDA_SUCCESS);
    std::vector<unsigned> read(7);
    EXPECT_EQ(emu::cuMemcpyDtoH(read.data(), memory.pointer, 7 * sizeof(unsigned)), CUDA_SUCCESS);
    EXPECT_EQ(read, (std::vector<unsigned>{7, 7, 7, 7, 7, 7, 0}));

    EXPECT_EQ(launch(function, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(function, parameters, parameters), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuLibraryUnload(library), CUDA_SUCCESS);
}

TEST_F(Libraries, LeaveNothingToUseWhenUnloaded) {
    add_host_twin("emu_test_add", kHostTwin<&add>);
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    ASSERT_EQ(load(library, kPtx), CUDA_SUCCESS);
    EXPECT_EQ(inventory()["libraries"], 1u);
    ASSERT_EQ(emu::cuLibraryGetKernel(&kernel, library, "emu_test_add"), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuLibraryUnload(library), CUDA_SUCCESS);

    unsigned* to = nullptr;
    unsigned number = 0;
    void* parameters[] = {&to, &number};
    EXPECT_EQ(launch(function, parameters), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(emu::cuKernelGetFunction(&function, kernel), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(emu::cuLibraryGetKernel(&kernel, library, "emu_test_add"), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(emu::cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Libraries, RefuseAKernelWithoutTwinAndSayHowToGiveItOne) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    ASSERT_EQ(load(library, kPtx), CUDA_SUCCESS);
    testing::internal::CaptureStderr();
    EXPECT_EQ(emu::cuLibraryGetKernel(&kernel, library, "emu_test_without_twin"),
              CUDA_ERROR_NO_BINARY_FOR_GPU);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("kernel emu_test_without_twin has no host twin"), std::string::npos)
        << said;
    EXPECT_EQ(kernel, nullptr);
    EXPECT_EQ(emu::cuLibraryUnload(library), CUDA_SUCCESS);
}

TEST_F(Libraries, TakeNoMachineCodeOfAGpu) {
    CUlibrary library = nullptr;
    for (const char* code : {"\177ELF", "\x50\xed\x55\xba"}) {
        EXPECT_EQ(load(library, code), CUDA_ERROR_NO_BINARY_FOR_GPU) << code;
    }
}

TEST_F(Libraries, AreNotNeededForKernelsOfTheProgramItself) {
    add_host_twin("emu_test_add", kHostTwin<&add>);
    CUfunction function = nullptr;
    CUfunction again = nullptr;
    ASSERT_EQ(get_function_of_twin(&function, "emu_test_add"), CUDA_SUCCESS);
    add_host_twin("emu_test_add", kHostTwin<&add>);
    ASSERT_EQ(get_function_of_twin(&again, "emu_test_add"), CUDA_SUCCESS);
    EXPECT_EQ(function, again);
    EXPECT_EQ(get_function_of_twin(&again, "emu_test_without_twin"), CUDA_ERROR_NOT_FOUND);
}

}  // namespace
}  // namespace symm::emu
