// sluice_ranks.cc - one rank of sluice::DataParallel, measured in turn with ddp_ranks.py.
//
// Orders are JSON documents, the same as there: {"do": "build"}, then "steps" of a way, "transfer"
// and "check".

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "bench/allreduce/resident.h"
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

class Contest {
 public:
  Contest() : comm_{Communicator::from_env()} { at::set_num_threads(1); }

  std::string answer(std::string_view message) {
    const Json order = Json::parse(message);
    const std::string what = order.at("do");
    if (what == "build") return build(order).dump();
    if (what == "steps") return steps(order).dump();
    if (what == "transfer") return transfer(order).dump();
    return check().dump();
  }

 private:
  Json build(const Json& order) {
    const Workload workload{.model = order.at("model"),
                            .image = order.at("image"),
                            .batch = order.at("batch"),
                            .classes = order.at("classes"),
                            .set_to_none = order.at("set_to_none")};
    trainings_.clear();  // those before go first: all together may not fit
    for (const Json& way : order.at("ways")) {
      std::optional<GradientOptions> options;
      if (!way.is_null()) options = GradientOptions{.theta = way.at("theta")};
      trainings_.push_back(std::make_unique<Training>(workload, comm_, options));
    }
    return {{"parameters", elements()}};
  }

  std::size_t elements() const {
    return static_cast<std::size_t>(trainings_[0]->gradient_bytes()) / sizeof(float);
  }

  Json steps(const Json& order) {
    Json seconds = Json::array();
    for (const std::size_t way : order.at("ways")) {
      comm_.barrier();
      seconds.push_back(seconds_of([&] { trainings_.at(way)->step(); }));
    }
    return {{"seconds", seconds}};
  }

  // An all-reduce of as much as all gradients are, in one piece.
  Json transfer(const Json& order) {
    const Pool pool = comm_.allocate(elements() * sizeof(float));
    const auto all_reduce = [&] { comm_.all_reduce(pool.data(), elements()).wait(); };
    all_reduce();
    Json seconds = Json::array();
    for (int i = 0; i < order.at("times"); ++i) seconds.push_back(seconds_of(all_reduce));
    comm_.barrier();  // peers may still read from it
    return {{"seconds", seconds}};
  }

  Json check() const {
    Json said{{"hashes", Json::array()}, {"losses", Json::array()}};
    for (const auto& training : trainings_) {
      said["hashes"].push_back(base::format("{:016x}", training->weights_hash()));
      said["losses"].push_back(training->loss());
    }
    return said;
  }

  Communicator comm_;
  std::vector<std::unique_ptr<Training>> trainings_;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  return resident_main(argc, argv, [](const ContenderArguments& /*from the environment*/) {
    return [contest = std::make_shared<Contest>()](std::string_view order) {
      return contest->answer(order);
    };
  });
}
