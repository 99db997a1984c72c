#pragma once
/// \file
/// The primitives from which collectives are made, for any protocol. Each call is one step. Its
/// name lists what happens, in this order:
///
/// | word   | meaning                                                            |
/// |--------|--------------------------------------------------------------------|
/// | recv   | takes what the previous rank sent                                  |
/// | reduce | combines it with the source, this rank's input                     |
/// | copy   | writes the result to the output                                    |
/// | send   | sends the result to the next rank                                  |
/// | direct | before send: stores it into the next rank's output; before recv: the data is already there |

#include <cuda_runtime.h>

#include <cstddef>

namespace symm {

/// The parts of one step, which the primitive's name lists.
struct Move {
    bool receive = false;
    bool send = false;
    bool source = false;  ///< Reads the user's input.
    bool output = false;  ///< Writes the user's output.
    /// The received data is already in the output: the sender stored it there.
    bool received_in_place = false;
    /// The sent data is stored into the next rank's output.
    bool sent_in_place = false;

    /// All ranks' elements have been combined: in these collectives the rank that adds the last
    /// elements writes the result to its output.
    __host__ __device__ constexpr bool completes() const { return receive && source && output; }
};

/// `Protocol` is Simple<T, Group>, LL<T, Group> or LL128<T, Group>. A call is a step of at most
/// Protocol::step_elements() elements. All threads of the group make it together, with the same
/// numbers; the two ranks of a step pass the same count (only Simple notices if they do not).
/// `source` and `output` may be the same, at any address of their type. Once a wait has given up,
/// all further calls do nothing.
template <class Protocol, class T>
class Primitives {
public:
    __host__ __device__ explicit Primitives(Protocol& protocol) : protocol_(protocol) {}

    __host__ __device__ void send(const T* source, std::size_t count) {
        protocol_.template step<Move{.send = true, .source = true}>(source, nullptr, count);
    }
    __host__ __device__ void copy_send(const T* source, T* output, std::size_t count) {
        protocol_.template step<Move{.send = true, .source = true, .output = true}>(source, output,
                                                                                    count);
    }
    __host__ __device__ void recv(T* output, std::size_t count) {
        protocol_.template step<Move{.receive = true, .output = true}>(nullptr, output, count);
    }
    __host__ __device__ void recv_copy_send(T* output, std::size_t count) {
        protocol_.template step<Move{.receive = true, .send = true, .output = true}>(nullptr,
                                                                                     output, count);
    }
    __host__ __device__ void recv_reduce_send(const T* source, std::size_t count) {
        protocol_.template step<Move{.receive = true, .send = true, .source = true}>(
            source, nullptr, count);
    }
    __host__ __device__ void recv_reduce_copy(const T* source, T* output, std::size_t count) {
        protocol_.template step<Move{.receive = true, .source = true, .output = true}>(
            source, output, count);
    }

    /// The direct forms. If the next rank's output cannot be reached, and in LL and LL128, they are
    /// the same as the plain forms. All ranks agree on that.
    __host__ __device__ void recv_reduce_copy_direct_send(const T* source, T* output,
                                                          std::size_t count) {
        protocol_.template step<Move{
            .receive = true, .send = true, .source = true, .output = true, .sent_in_place = true}>(
            source, output, count);
    }
    __host__ __device__ void direct_recv_copy_direct_send(T* output, std::size_t count) {
        protocol_.template step<Move{.receive = true,
                                     .send = true,
                                     .output = true,
                                     .received_in_place = true,
                                     .sent_in_place = true}>(nullptr, output, count);
    }
    __host__ __device__ void direct_recv(T* output, std::size_t count) {
        protocol_.template step<Move{.receive = true, .output = true, .received_in_place = true}>(
            nullptr, output, count);
    }

private:
    Protocol& protocol_;
};

}  // namespace symm
