#include "common/nccl/turn_timer.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/cuda/graph.hpp"
#include "common/ranks/rank.hpp"

namespace symm {

TurnTimer::TurnTimer(Rank& rank, const Stream& stream, int iterations, int graph_launches,
                     std::function<void(std::string_view)> synchronize, int warm_ups)
    : rank_(rank),
      stream_(stream),
      iterations_(iterations),
      graph_launches_(graph_launches),
      synchronize_(std::move(synchronize)),
      warm_ups_(warm_ups) {}

double TurnTimer::time(const std::function<void()>& call,
                       const std::function<void()>& prepare) const {
    const auto make_calls = [&](int calls) {
        for (int i = 0; i < calls; ++i) {
            call();
        }
    };
    make_calls(warm_ups_);  // a candidate's setup at its first call must not be captured
    synchronize_("warming up");
    std::optional<Graph> graph;
    if (graph_launches_ > 0) {
        graph = Graph::capture(stream_.get(), [&] { make_calls(iterations_); });
        graph->launch(stream_.get());  // the first launch uploads it
    }
    prepare();
    synchronize_("warming up");
    rank_.bootstrap().barrier("turn");
    call();  // ranks leave the barrier one after the other: this call waits for the last
    start_.record(stream_.get());
    if (graph) {
        for (int i = 0; i < graph_launches_; ++i) {
            graph->launch(stream_.get());
        }
    } else {
        make_calls(iterations_);
    }
    end_.record(stream_.get());
    synchronize_("the timed calls");
    const double mine = elapsed_us(start_, end_) / iterations_ / std::max(graph_launches_, 1);
    const auto all = rank_.bootstrap().allgather("time", mine);
    return *std::ranges::max_element(all);
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
