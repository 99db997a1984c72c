// An AllReduce of one's own, outside of the repository: a ring by packets. In a shared object that
// SYMM_ALGORITHMS names it is one more algorithm: for --algo, the tuner, libsymm.so and the
// drop-in.
//
// n ranks, n parts. Thread j of rank r owns packet j of each part; slot (s, j) is for step s.
//
// | step              | rank r sends to rank r + 1      | and makes of what rank r - 1 sent |
// |-------------------|---------------------------------|-----------------------------------|
// | 0 to n - 2        | its sum of part r - s so far    | its sum of part r - s - 1, with its own |
// | n - 1 to 2 n - 3  | the whole sum of part r + n - s | its output of part r + n - 1 - s  |
//
// Orders and no deadlock: as in one shot, whose mailbox this uses. The next call cannot overtake
// this one: a kernel ends when it has all sums, in which every rank's data of this call are. Sums
// are added up in another order for each part, so the bits may differ from those of other
// algorithms: on each rank they are the same.

#include <symm/algorithm.hpp>
#include <symm/kernel.hpp>

namespace {

constexpr unsigned kSlots = 1 << 15;  // for 2 (n - 1) steps of 1 / n of a launch's packets
constexpr std::size_t kAtOnce = 112 * 1024;

template <class T, int kMost>
struct Ring : symm::AlgorithmParams {
    using Pack = symm::simt::Pack8;
    static constexpr std::size_t kPerPacket = symm::kPerPack<T, Pack>;

    __host__ __device__ void operator()(const symm::simt::ThreadBlock& block) const {
        symm::MailboxSession<symm::Packets, kMost> mailbox(block, *this);
        const std::size_t packets = (count + kPerPacket - 1) / kPerPacket;
        const std::size_t per_part = (packets + ranks - 1) / ranks;
        for (std::size_t j = block.grid_rank(); j < per_part && !mailbox.gave_up();
             j += block.grid_size()) {
            if (!go_round(mailbox, j, per_part)) {
                break;
            }
        }
        mailbox.end(block, 2 * static_cast<std::size_t>(ranks - 1) * per_part);
    }

private:
    __host__ __device__ bool go_round(symm::MailboxSession<symm::Packets, kMost>& mailbox,
                                      std::size_t j, std::size_t per_part) const {
        Pack sum = load(rank, j, per_part);
        if (ranks == 1) {
            store(0, j, per_part, sum);
        }
        for (int s = 0; s < 2 * (ranks - 1); ++s) {
            const std::size_t slot = static_cast<std::size_t>(s) * per_part + j;
            const int before = peer(ranks - 1);
            mailbox.send(peer(1), slot, sum);
            Pack arrived[kMost];
            symm::fill_with(arrived, sum);
            if (!mailbox.receive(1U << before, slot, arrived)) {
                return false;
            }
            sum = arrived[0];
            SYMM_UNROLL
            for (int p = 1; p < kMost; ++p) {
                sum = p == before ? arrived[p] : sum;
            }
            const int part = (rank + 2 * ranks - 1 - s) % ranks;
            if (s < ranks - 1) {
                const Pack two[2] = {sum, load(part, j, per_part)};
                sum = reduction.reduce<T>(two, 2, s == ranks - 2);
            }
            if (s >= ranks - 2) {
                store(part, j, per_part, sum);
            }
        }
        return true;
    }

    /// Where packet j of a part begins, in elements; nothing behind the last.
    __host__ __device__ std::size_t begin(int part, std::size_t j, std::size_t per_part) const {
        const std::size_t at = (static_cast<std::size_t>(part) * per_part + j) * kPerPacket;
        return at < count ? at : count;
    }
    __host__ __device__ Pack load(int part, std::size_t j, std::size_t per_part) const {
        const std::size_t at = begin(part, j, per_part);
        return symm::load_elements<Pack>(reinterpret_cast<const T*>(in) + at, count - at);
    }
    __host__ __device__ void store(int part, std::size_t j, std::size_t per_part,
                                   const Pack& pack) const {
        const std::size_t at = begin(part, j, per_part);
        symm::store_elements(reinterpret_cast<T*>(out) + at, pack, count - at);
    }
};

}  // namespace

SYMM_ALGORITHMS(symm::algorithm<Ring>(
    {.name = "ring", .slots_per_peer = kSlots, .bytes_per_thread = 8, .at_once = kAtOnce}))
