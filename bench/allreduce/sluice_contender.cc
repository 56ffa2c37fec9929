// sluice_contender.cc - a rank of Sluice, over the transport of its environment. EXTRA is the
// memory: `pooled` or `foreign`.
#include <optional>

#include "bench/allreduce/contender.h"
#include "sluice/communicator.h"

namespace sluice::bench {
namespace {

class SluiceContender : public Contender {
 public:
  explicit SluiceContender(const WorkerArguments& arguments)
      : pooled_{arguments.extra == "pooled"}, comm_{Communicator::from_env()} {}

  int ranks() const override { return comm_.size(); }
  bool supports(DataType /*type*/) const override { return true; }

  std::vector<RankBuffer> allocate(std::size_t bytes) override {
    release();
    if (pooled_) {
      pool_ = comm_.allocate(bytes);
      data_ = pool_->data();
    } else {
      data_ = memory_.allocate(bytes);
    }
    return {{comm_.rank(), data_}};
  }

  void release() override {
    if (pool_) comm_.barrier();  // peers may still read from it
    pool_.reset();
    memory_.release();
  }

  void barrier() override { comm_.barrier(); }

  void all_reduce(DataType type, std::size_t count, int times) override {
    for (int i = 0; i < times; ++i) comm_.all_reduce({data_, count, type}).wait();
  }

 private:
  bool pooled_;
  Communicator comm_;
  std::optional<Pool> pool_;
  OrdinaryMemory memory_;
  void* data_ = nullptr;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  return contender_main(argc, argv, [](const WorkerArguments& arguments) {
    return std::make_unique<SluiceContender>(arguments);
  });
}
