// The fastest AllReduce for one size: an open task, done by packets in one shot.
// `./lab bench fastest` measures it beside ours and NCCL's.

#include <symm/algorithm.hpp>
#include <symm/kernel.hpp>

namespace {

constexpr symm::AlgorithmTraits kFastest{
    .name = "fastest", .slots_per_peer = 1 << 13, .bytes_per_thread = 8, .at_once = 64 * 1024};

template <class T, int kMost>
struct Fastest : symm::AlgorithmParams {
    using Pack = symm::simt::Pack8;
    static constexpr std::size_t kPerPacket = symm::kPerPack<T, Pack>;

    __host__ __device__ void operator()(const symm::simt::ThreadBlock& block) const {
        symm::MailboxSession<symm::Packets, kMost> mailbox(block, *this);
        const std::size_t packets = (count + kPerPacket - 1) / kPerPacket;
        for (std::size_t i = block.grid_rank(); i < packets && !mailbox.gave_up();
             i += block.grid_size()) {
            const std::size_t at = i * kPerPacket;
            Pack data[kMost];
            symm::fill_with(
                data, symm::load_elements<Pack>(reinterpret_cast<const T*>(in) + at, count - at));
            for (int step = 1; step < ranks; ++step) {
                mailbox.send(peer(step), i, data[0]);
            }
            if (!mailbox.receive(peers(), i, data)) {
                break;
            }
            symm::store_elements(reinterpret_cast<T*>(out) + at, reduction.reduce<T>(data, ranks),
                                 count - at);
        }
        mailbox.end(block, packets);
    }
};

}  // namespace

SYMM_ALGORITHMS(symm::algorithm<Fastest>(kFastest))
