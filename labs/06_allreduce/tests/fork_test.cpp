// A rank forks a child, which has copies of all objects of its parent. Whatever the child does with
// them, it ends soon, and the parent's objects work afterwards.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/tests/forked.hpp"
#include "common/tests/patient.hpp"
#include "common/tests/run_as.hpp"
#include "common/tests/text_thrown_by.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/04_shm_transport/unpack_queue/tcp_unpacker.hpp"
#include "labs/05_device_prims/ring/ring_communicator.hpp"
#include "symm/nodes/hierarchical_communicator.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr std::size_t kCount = 1001;
constexpr std::size_t kBytes = kCount * sizeof(float);

/// An object of a rank.
class Owned {
public:
    virtual ~Owned() = default;
    /// Uses it. Collective. Throws if the result is wrong.
    virtual void use() = 0;
};

void fill(CUdeviceptr memory, float value) {
    const std::vector<float> values(kCount, value);
    copy_to_device(memory, values.data(), kBytes);
}

void require_all(CUdeviceptr memory, float value) {
    std::vector<float> values(kCount);
    copy_to_host(values.data(), memory, kBytes);
    require(values == std::vector<float>(kCount, value), "wrong result");
}

class OwnsCommunicator : public Owned {
public:
    explicit OwnsCommunicator(Rank& rank) : communicator_(rank), rank_(rank) {}
    void use() override {
        fill(window_, static_cast<float>(rank_.rank() + 1));
        communicator_.all_reduce(window_, window_, kCount, DataType::kFloat, ReduceOp::kSum,
                                 stream_.get());
        communicator_.synchronize(stream_, "the call");
        require_all(window_, 3);
    }

private:
    Communicator communicator_;
    Rank& rank_;
    Stream stream_;
    CUdeviceptr window_ = communicator_.allocate(kBytes);
};

template <RingMemory memory>
class OwnsRing : public Owned {
public:
    explicit OwnsRing(Rank& rank)
        : rank_(rank), buffer_(rank.device(), kBytes), ring_(rank, {.memory = memory}) {}
    void use() override {
        fill(buffer_.base(), static_cast<float>(rank_.rank() + 1));
        RingRequest call;
        call.input = call.output = buffer_.base();
        call.count = kCount;
        ring_.queue(call, stream_.get());
        ring_.synchronize(stream_, "the call");
        require_all(buffer_.base(), 3);
    }

private:
    Rank& rank_;
    DeviceBuffer buffer_;
    Stream stream_;
    RingCommunicator ring_;
};

class OwnsTransport : public Owned {
public:
    explicit OwnsTransport(Rank& rank)
        : rank_(rank),
          from_(rank.device(), kBytes),
          to_(rank.device(), kBytes),
          peer_{1 - rank.rank()},
          transport_(rank, peer_, {.proxy = ProxySide::kBoth}) {}
    void use() override {
        fill(from_.base(), static_cast<float>(rank_.rank() + 1));
        transport_.send_receive({peer_[0], from_.base(), kBytes}, {peer_[0], to_.base(), kBytes},
                                stream_.get());
        transport_.finish(stream_);
        require_all(to_.base(), static_cast<float>(peer_[0] + 1));
    }

private:
    Rank& rank_;
    DeviceBuffer from_;
    DeviceBuffer to_;
    Stream stream_;
    std::array<int, 1> peer_;
    ShmTransport transport_;
};

class OwnsUnpacker : public Owned {
public:
    explicit OwnsUnpacker(Rank& /*rank*/)
        : user_(kBytes), unpacker_(std::move(sockets_.second), 1, 0) {}
    void use() override {
        const std::vector<float> sent(kCount, 7);
        fill(user_.address(), 0);
        unpacker_.receive(user_.address(), kBytes, kBytes, stream_.get());
        send_piece(sockets_.first, 0, std::as_bytes(std::span(sent)));
        unpacker_.finish(stream_);
        require_all(user_.address(), 7);
    }

private:
    std::pair<UniqueFd, UniqueFd> sockets_ = loopback_tcp_pair();
    Stream stream_;
    DeviceMemory user_;
    TcpUnpacker unpacker_;
};

/// A rail of one machine.
class NoRail final : public Rail {
public:
    int machine() const override { return 0; }
    int machines() const override { return 1; }
    void all_to_all(const std::byte* from, std::byte* to, std::size_t bytes, Deadline) override {
        std::copy_n(from, bytes, to);
    }
    void all_gather(const std::byte* from, std::byte* to, std::size_t bytes, Deadline) override {
        std::copy_n(from, bytes, to);
    }
    void fail(std::string_view) noexcept override {}
};

class OwnsMachines : public Owned {
public:
    explicit OwnsMachines(Rank& rank)
        : rank_(rank),
          exchange_(rank, std::make_unique<NoRail>()),
          communicator_(rank, exchange_) {}
    void use() override {
        fill(window_, static_cast<float>(rank_.rank() + 1));
        communicator_.all_reduce(window_, window_, kCount, DataType::kFloat, ReduceOp::kSum,
                                 stream_.get());
        communicator_.synchronize(stream_, "the call");
        require_all(window_, 3);
    }

private:
    Rank& rank_;
    Stream stream_;
    Exchange exchange_;
    HierarchicalCommunicator communicator_;
    CUdeviceptr window_ = communicator_.inside().allocate(kBytes);
};

class OwnsRange : public Owned {
public:
    explicit OwnsRange(Rank& rank) : rank_(rank), range_(rank, kBytes) {}
    void use() override {
        fill(range_.local(), static_cast<float>(rank_.rank() + 1));
        rank_.bootstrap().barrier("filled");
        require_all(reinterpret_cast<CUdeviceptr>(range_.at<float>(1 - rank_.rank())),
                    static_cast<float>(2 - rank_.rank()));
        rank_.bootstrap().barrier("read");
    }

private:
    Rank& rank_;
    SymmetricRange range_;
};

template <class Kind>
std::unique_ptr<Owned> make(Rank& rank) {
    return std::make_unique<Kind>(rank);
}
using Make = std::unique_ptr<Owned> (*)(Rank&);

struct Kind {
    std::string name;
    Make make;
};
const Kind kKinds[] = {{"Communicator", make<OwnsCommunicator>},
                       {"RingInPeerMemory", make<OwnsRing<RingMemory::kPeer>>},
                       {"RingInHostMemory", make<OwnsRing<RingMemory::kHost>>},
                       {"TransportWithProxies", make<OwnsTransport>},
                       {"TcpUnpacker", make<OwnsUnpacker>},
                       {"HierarchicalCommunicator", make<OwnsMachines>},
                       {"SymmetricRange", make<OwnsRange>}};

void PrintTo(const Kind& kind, std::ostream* out) {
    *out << kind.name;
}

/// What a child does with its copy of the parent's object.
struct Way {
    std::string name;
    std::function<void(const Kind&, Rank&, std::unique_ptr<Owned>&)> act;
};
const Way kWays[] = {
    {"Destroys", [](const Kind&, Rank&, std::unique_ptr<Owned>& owned) { owned.reset(); }},
    {"Unwinds",
     [](const Kind&, Rank&, std::unique_ptr<Owned>& owned) {
         try {
             const auto destroyed = std::move(owned);
             throw std::logic_error("on purpose");
         } catch (const std::logic_error&) {
         }
     }},
    {"Uses",
     [](const Kind&, Rank&, std::unique_ptr<Owned>& owned) {
         const std::string text = text_thrown_by([&] { owned->use(); });
         require(text.find("fork()") != std::string::npos, "a use of it says: " + text);
     }},
    {"MakesAnother",
     [](const Kind& kind, Rank& rank, std::unique_ptr<Owned>&) {
         const std::string text = text_thrown_by([&] { kind.make(rank); });
         require(text.find("fork()") != std::string::npos, "to make one says: " + text);
     }},
    {"Exits", [](const Kind&, Rank&, std::unique_ptr<Owned>&) { std::exit(0); }},
};

class AForkedChild : public ::testing::TestWithParam<Kind> {};

TEST_P(AForkedChild, HarmsNeitherItsParentNorItself) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        std::unique_ptr<Owned> owned = GetParam().make(rank);
        owned->use();
        for (const Way& way : kWays) {
            if (rank.rank() == 1) {
                EXPECT_EQ(end_of_child([&] { way.act(GetParam(), rank, owned); }),
                          "exited with code 0")
                    << way.name;
            }
            rank.bootstrap().barrier("the child has ended", patient());
            owned->use();
        }
    });
}

INSTANTIATE_TEST_SUITE_P(, AForkedChild, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace symm
