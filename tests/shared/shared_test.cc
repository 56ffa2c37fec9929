// A program that links all libraries of Sluice as shared libraries.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <torch/torch.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sluice/communicator.h"
#include "sluice/log.h"
#include "sluice/torch/data_parallel.h"

namespace {

// Collects the messages that are logged during its lifetime.
class CollectedLog {
 public:
  CollectedLog() {
    sluice::set_log([this](sluice::LogLevel, const std::string& message) {
      const std::lock_guard lock{mutex_};
      messages_.push_back(message);
    });
  }
  ~CollectedLog() { sluice::set_log(nullptr); }
  CollectedLog(const CollectedLog&) = delete;
  CollectedLog& operator=(const CollectedLog&) = delete;

  int count(const std::string& part) {
    const std::lock_guard lock{mutex_};
    return static_cast<int>(std::count_if(messages_.begin(), messages_.end(), [&](const auto& m) {
      return m.find(part) != std::string::npos;
    }));
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> messages_;
};

struct Net : torch::nn::Module {
  explicit Net(double weight) {
    used = register_parameter("used", torch::full({3}, weight));
    unused = register_parameter("unused", torch::ones({2}));
  }
  torch::Tensor used, unused;
};

TEST(SharedLibraries, SendTheirWarningsToOneSink) {
  CollectedLog log;
  ASSERT_EQ(setenv("SLUICE_LOG", "loud", 1), 0);
  sluice::Communicator::from_env();
  ASSERT_EQ(unsetenv("SLUICE_LOG"), 0);
  EXPECT_EQ(log.count("SLUICE_LOG"), 1) << "from libsluice";

  std::vector<sluice::Communicator> ranks = sluice::Communicator::in_process(2);
  std::vector<std::thread> threads;
  std::vector<torch::Tensor> means(2);
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Net net{1.0 + rank};
      sluice::DataParallel parallel{net, ranks[static_cast<std::size_t>(rank)]};
      (net.used.sum() * (rank + 1)).backward();
      parallel.finish();
      means[static_cast<std::size_t>(rank)] = net.used.grad().clone();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(log.count("weights differed"), 1) << "from libsluice_torch";
  EXPECT_EQ(log.count("\"unused\""), 1) << "from libsluice, called by libsluice_torch";
  for (const torch::Tensor& mean : means) EXPECT_TRUE(torch::equal(mean, torch::full({3}, 1.5)));
}

TEST(SharedLibraries, ThrowErrorsThatTheProgramCatchesByType) {
  std::vector<sluice::Communicator> ranks = sluice::Communicator::in_process(1);
  float value = 1;
  EXPECT_THROW(ranks[0].all_reduce(std::span{&value, 1}, {.algorithm = "no_such"}).wait(),
               sluice::Error);
}

}  // namespace
