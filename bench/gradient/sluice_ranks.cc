// sluice_ranks.cc - a rank of sluice::DataParallel, which takes turns with ddp_ranks.py.
//
// Both serve the same requests, JSON documents: {"do": "build"}, then "steps", "transfer" and
// "check".

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "bench/allreduce/worker.h"
#include "bench/gradient/training.h"

namespace sluice::bench {
namespace {

using Json = nlohmann::json;

template <class Work>
double seconds_of(const Work& work) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class SluiceRank {
 public:
  SluiceRank() : comm_{Communicator::from_env()} { at::set_num_threads(1); }

  std::string handle(std::string_view message) {
    const Json request = Json::parse(message);
    const std::string what = request.at("do");
    if (what == "build") return build(request).dump();
    if (what == "steps") return steps(request).dump();
    if (what == "transfer") return transfer(request).dump();
    return check().dump();
  }

 private:
  Json build(const Json& request) {
    const Workload workload{.model = request.at("model"),
                            .image = request.at("image"),
                            .batch = request.at("batch"),
                            .classes = request.at("classes"),
                            .set_to_none = request.at("set_to_none")};
    trainings_.clear();  // free the old ones first: both may not fit in memory
    for (const Json& way : request.at("ways")) {
      std::optional<GradientOptions> options;
      if (!way.is_null()) options = GradientOptions{.theta = way.at("theta")};
      trainings_.push_back(std::make_unique<Training>(workload, comm_, options));
    }
    return {{"parameters", elements()}};
  }

  std::size_t elements() const {
    return static_cast<std::size_t>(trainings_[0]->gradient_bytes()) / sizeof(float);
  }

  Json steps(const Json& request) {
    Json seconds = Json::array();
    for (const std::size_t way : request.at("ways")) {
      comm_.barrier();
      seconds.push_back(seconds_of([&] { trainings_.at(way)->step(); }));
    }
    return {{"seconds", seconds}};
  }

  // Times all-reduces of all gradients in one piece.
  Json transfer(const Json& request) {
    const Pool pool = comm_.allocate(elements() * sizeof(float));
    const auto all_reduce = [&] { comm_.all_reduce(pool.as<float>()).wait(); };
    all_reduce();
    Json seconds = Json::array();
    for (int i = 0; i < request.at("times"); ++i) seconds.push_back(seconds_of(all_reduce));
    comm_.barrier();  // peers may still read from it
    return {{"seconds", seconds}};
  }

  Json check() const {
    Json reply{{"hashes", Json::array()}, {"losses", Json::array()}};
    for (const auto& training : trainings_) {
      reply["hashes"].push_back(base::format("{:016x}", training->weights_hash()));
      reply["losses"].push_back(training->loss());
    }
    return reply;
  }

  Communicator comm_;
  std::vector<std::unique_ptr<Training>> trainings_;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  return worker_main(argc, argv, [](const WorkerArguments& /*unused*/) {
    return [rank = std::make_shared<SluiceRank>()](std::string_view request) {
      return rank->handle(request);
    };
  });
}
