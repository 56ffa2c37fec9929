// Known results about real clusters: which method helps on which network.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "simulate/training.h"
#include "sluice/analysis/select.h"

namespace sluice::simulate {
namespace {

TrainingTime train(const char* cluster, int ranks, const char* recipe,
                   const std::vector<std::string>& settings) {
  return simulate_training({.scenario = {.cluster = cluster::find_cluster(cluster).value()},
                            .recipe = recipe::load_recipe(recipe, settings).value(),
                            .ranks = ranks})
      .value();
}

TEST(KnownResults, AlexNetOn56GbitNeedsSparsityAndResNet50DoesNot) {
  const auto speedup = [](const char* model, const char* sparsity) {
    return train("sensetime-v", 512, "gradientflow-alexnet", {model, sparsity}).speedup;
  };
  const double alexnet_dense = speedup("model=alexnet_bn", "sparsity=0");
  const double alexnet_sparse = speedup("model=alexnet_bn", "sparsity=0.85");
  const double resnet_dense = speedup("model=resnet50", "sparsity=0");
  const double resnet_sparse = speedup("model=resnet50", "sparsity=0.85");
  base::print(
      "speed-up on 512 ranks, 56 Gbit/s: AlexNet {:.0f} dense, {:.0f} sparse; ResNet-50 "
      "{:.0f} dense, {:.0f} sparse\n",
      alexnet_dense, alexnet_sparse, resnet_dense, resnet_sparse);
  EXPECT_LT(alexnet_dense, 300) << "less than 60% of 512 GPUs";
  EXPECT_GT(alexnet_sparse, 1.3 * alexnet_dense);
  EXPECT_GT(resnet_dense, 0.85 * 512);
  EXPECT_LT(resnet_sparse, 1.03 * resnet_dense) << "ResNet-50 gains nothing";
}

TEST(KnownResults, DoubleBufferingWithF16IsFastOn10GbitEthernet) {
  const auto hours = [](const char* cluster, const char* buffering, const char* wire) {
    return train(cluster, 32, "chainermn-cloud", {buffering, wire, "theta=1G"}).time_to_train_s /
           3600;
  };
  const double infiniband = hours("mn-1", "double_buffering=false", "wire=f32");
  const double plain = hours("mn-1-10gbe", "double_buffering=false", "wire=f32");
  const double f16 = hours("mn-1-10gbe", "double_buffering=false", "wire=f16");
  const double buffered = hours("mn-1-10gbe", "double_buffering=true", "wire=f32");
  const double both = hours("mn-1-10gbe", "double_buffering=true", "wire=f16");
  base::print(
      "hours to train on 32 ranks: InfiniBand {:.2f}; 10 Gbit/s {:.2f}, with f16 {:.2f}, "
      "double buffering {:.2f}, both {:.2f}\n",
      infiniband, plain, f16, buffered, both);
  EXPECT_GT(plain, 2.5 * infiniband);
  EXPECT_GT(f16, 1.5 * infiniband) << "half the bytes are not enough";
  EXPECT_GT(buffered, 1.5 * infiniband) << "neither is overlap";
  EXPECT_LT(both, 1.2 * infiniband);
}

class AllReduceOn {
 public:
  AllReduceOn(const cluster::Cluster& cluster, int ranks)
      : ranks_{ranks}, simulator_{CollectiveSimulator::on(cluster, ranks).value()} {}

  // The time on a grid of `rows` rows of ranks; 0: the grid of the nodes.
  double seconds(const char* name, double bytes, int rows = 0) {
    const Algorithm& algorithm = *find_algorithm(name).value();
    Shape shape{.ranks = ranks_};
    if (rows > 0) {
      shape.grid.assign(static_cast<std::size_t>(rows), ranks_ / rows);
      shape = complete_shape(algorithm, shape).value();
    } else {
      shape = shape_on(algorithm, shape, simulator_.topology()).value();
    }
    const std::vector<double> done = simulator_.run(algorithm, shape, {.bytes = bytes}).value();
    return *std::max_element(done.begin(), done.end());
  }

  // The size from which the flat ring is faster, to within 3%.
  double ring_wins_from(const char* other, int rows) {
    double low = 1e6;
    double high = 16e9;
    while (high / low > 1.03) {
      const double middle = std::sqrt(low * high);
      (seconds("ring", middle) < seconds(other, middle, rows) ? high : low) = middle;
    }
    return high;
  }

 private:
  int ranks_;
  CollectiveSimulator simulator_;
};

TEST(KnownResults, On2048RanksTheFlatRingWinsForLongBuffersOnly) {
  AllReduceOn abci{cluster::find_cluster("abci").value(), 2048};
  const double hierarchical = abci.ring_wins_from("hierarchical:ring", 0);
  const double torus = abci.ring_wins_from("torus", 32);
  base::print(
      "2,048 ranks of abci: the flat ring wins over hierarchical rings from {:.0f} MB on, "
      "over a torus of 32 x 64 from {:.0f} MB on\n",
      hierarchical / 1e6, torus / 1e6);
  EXPECT_GT(abci.seconds("ring", 51.1e6), 1.3 * abci.seconds("hierarchical:ring", 51.1e6));
  EXPECT_GT(abci.seconds("ring", 51.1e6), 1.3 * abci.seconds("torus", 51.1e6, 32));
  EXPECT_GT(hierarchical, 0.1e9);
  EXPECT_LT(hierarchical, 1e9);
  EXPECT_GT(torus, hierarchical);
  EXPECT_LT(torus, 4e9);
}

TEST(KnownResults, AThinTreeSlowsFarFirstHalvingDoublingButNotARing) {
  const cluster::Cluster thin = cluster::find_cluster("mn-1").value();
  cluster::Cluster full = thin;
  for (SwitchLevel& level : full.constants.network.levels) level.oversubscription = 1;
  AllReduceOn on_thin{thin, 512};
  AllReduceOn on_full{full, 512};
  const auto slowdown = [&](const char* name) {
    return on_thin.seconds(name, 51.1e6) / on_full.seconds(name, 51.1e6);
  };
  const double ring = slowdown("ring");
  const double near = slowdown("halving_doubling");
  const double far = slowdown("halving_doubling:far");
  base::print(
      "512 ranks of mn-1, a quarter of the uplinks: ring {:.2f} of the time over all of "
      "them, near-first halving_doubling {:.2f}, far-first {:.2f}\n",
      ring, near, far);
  EXPECT_LT(ring, 1.01);
  EXPECT_LT(near, 1.3);
  EXPECT_GT(far, 2);
}

}  // namespace
}  // namespace sluice::simulate
