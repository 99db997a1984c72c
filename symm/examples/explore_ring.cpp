// The ring in every execution that the memory model allows.

#include "ring.cu"

#include <tools/explore/explore_algorithm.hpp>

int main(int argc, char** argv) {
    return symm::explore_algorithm<Ring>(argc, argv, {.name = "ring", .slots_per_peer = 16});
}
