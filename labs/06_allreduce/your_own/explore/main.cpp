#include "scenes.hpp"

int main(int argc, char** argv) {
    std::vector<symm::explore::Protocol> all = your_own::all_to_all_scenes();
    for (const symm::explore::Protocol& one : your_own::rms_norm_scenes()) {
        all.push_back(one);
    }
    return symm::explore::explore_main(argc, argv, all);
}
