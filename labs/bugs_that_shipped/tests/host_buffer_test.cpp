// Two ranks that may or may not be able to use cuMem share a buffer.

#include "labs/bugs_that_shipped/host_buffer.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/sys/descriptor.hpp"

namespace symm::bugs_that_shipped {
namespace {

using Text = std::array<char, 6>;
constexpr Text kText{"hello"};

/// The owner's buffer, which begins with kText.
struct Owner {
    Owner(Path path, bool has_cumem) : descriptor{path, {}} {
        if (path == Path::kCuMem && !has_cumem) {
            throw std::runtime_error("the owner cannot make cuMem memory");
        }
        name = fmt::format("/symm{}", ::getpid());
        file = UniqueFd(path == Path::kCuMem
                            ? ::memfd_create("buffer", MFD_CLOEXEC)
                            : ::shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600));
        if (path == Path::kCuMem) {
            const int handle = file.get();
            std::memcpy(descriptor.bytes.data(), &handle, sizeof(handle));
        } else {
            name.copy(descriptor.bytes.data(), descriptor.bytes.size());
        }
        EXPECT_EQ(::pwrite(file.get(), kText.data(), kText.size(), 0), kText.size());
    }
    ~Owner() { ::shm_unlink(name.c_str()); }

    BufferDescriptor descriptor;
    std::string name;
    UniqueFd file;
};

/// The ranks that can use cuMem.
struct Machine {
    bool owner;
    bool peer;
};

class HostBuffer : public ::testing::TestWithParam<Machine> {};

TEST_P(HostBuffer, HasTheOwnersTextAtItsPeer) {
    const auto [owner_has, peer_has] = GetParam();
    const Owner owner(choose_path(owner_has, peer_has), owner_has);
    const UniqueFd file(attach(owner.descriptor, peer_has));
    Text text{};
    EXPECT_EQ(::pread(file.get(), text.data(), text.size(), 0), text.size());
    EXPECT_EQ(text, kText);
}

TEST_P(HostBuffer, UsesCuMemWhereBothCan) {
    const auto [owner_has, peer_has] = GetParam();
    const Path path = choose_path(owner_has, peer_has);
    if (owner_has && peer_has) {
        EXPECT_EQ(path, Path::kCuMem) << "although both ranks can use cuMem";
    } else {
        EXPECT_EQ(path, Path::kFile) << "although one rank cannot use cuMem";
    }
}

// A handle may be any number. The first byte of this one, as of a file's name, is a slash.
TEST(HandlesHostBuffer, IsReadAsItsDescriptorSays) {
    constexpr int kSlash = 0x100 + '/';
    const Owner owner(Path::kCuMem, true);
    const UniqueFd handle(::fcntl(owner.file.get(), F_DUPFD_CLOEXEC, kSlash));
    ASSERT_EQ(handle.get(), kSlash);
    BufferDescriptor descriptor{Path::kCuMem, {}};
    std::memcpy(descriptor.bytes.data(), &kSlash, sizeof(kSlash));
    EXPECT_GE(UniqueFd(attach(descriptor, true)).get(), 0);
    try {
        const UniqueFd file(attach(descriptor, false));
        ADD_FAILURE() << "a rank without cuMem has attached a buffer of cuMem";
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "cannot import the cuMem handle 303: not supported");
    }
}

INSTANTIATE_TEST_SUITE_P(On, HostBuffer,
                         ::testing::Values(Machine{true, true}, Machine{false, false},
                                           Machine{true, false}, Machine{false, true}),
                         [](const auto& info) {
                             return fmt::format("{}_{}", info.param.owner ? "cumem" : "none",
                                                info.param.peer ? "cumem" : "none");
                         });

}  // namespace
}  // namespace symm::bugs_that_shipped
