// The fastest kernel in every execution that the memory model allows. Its calls there are small.

#include "fastest.cu"

#include <algorithm>
#include <tools/explore/explore_algorithm.hpp>

int main(int argc, char** argv) {
    symm::AlgorithmTraits traits = kFastest;
    traits.name = "fastest";
    traits.slots_per_peer = std::min(traits.slots_per_peer, 16U);
    return symm::explore_algorithm<Fastest>(argc, argv, traits);
}
