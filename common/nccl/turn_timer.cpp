#include "common/nccl/turn_timer.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "common/cuda/event.hpp"
#include "common/cuda/graph.hpp"
#include "common/ranks/rank.hpp"

namespace symm {

double TurnTimer::time(const std::function<void()>& call,
                       const std::function<void()>& prepare) const {
    const auto make_calls = [&](int calls) {
        for (int i = 0; i < calls; ++i) {
            call();
        }
    };
    make_calls(warm_ups);  // a candidate's setup at its first call must not be captured
    synchronize("warming up");
    std::optional<Graph> graph;
    if (graph_launches > 0) {
        graph = Graph::capture(stream.get(), [&] { make_calls(iterations); });
        graph->launch(stream.get());  // the first launch uploads it
    }
    const Event start, end;
    prepare();
    synchronize("warming up");
    rank.bootstrap().barrier("turn");
    call();  // ranks leave the barrier one after the other: this call waits for the last
    start.record(stream.get());
    if (graph) {
        for (int i = 0; i < graph_launches; ++i) {
            graph->launch(stream.get());
        }
    } else {
        make_calls(iterations);
    }
    end.record(stream.get());
    synchronize("the timed calls");
    const double mine = elapsed_us(start, end) / iterations / std::max(graph_launches, 1);
    return std::ranges::max(rank.bootstrap().allgather("time", mine));
}

double time_together(Rank& rank, const std::function<void()>& step) {
    rank.bootstrap().barrier("before a timed step");
    const auto start = std::chrono::steady_clock::now();
    step();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    return std::ranges::max(rank.bootstrap().allgather("timed step", time.count()));
}

std::vector<double> medians_in_turn(std::size_t candidates, int rounds,
                                    const std::function<double(std::size_t c)>& turn) {
    std::vector<std::vector<double>> times(candidates);
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t c = 0; c < candidates; ++c) {
            times[c].push_back(turn(c));
        }
    }
    std::vector<double> medians;
    for (auto& all : times) {
        const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
        std::nth_element(all.begin(), middle, all.end());
        medians.push_back(*middle);
    }
    return medians;
}

}  // namespace symm
