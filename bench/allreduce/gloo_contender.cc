// gloo_contender.cc - a rank of Gloo over TCP. EXTRA is INTERFACE:FOLDER, with the folder for the
// rendezvous.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "bench/allreduce/contender.h"

namespace sluice::bench {
namespace {

class GlooContender : public Contender {
 public:
  explicit GlooContender(const WorkerArguments& arguments)
      : context_{std::make_shared<gloo::rendezvous::Context>(arguments.rank, arguments.ranks)} {
    gloo::transport::tcp::attr attributes;
    const std::size_t colon = arguments.extra.find(':');
    attributes.iface = arguments.extra.substr(0, colon);
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store{arguments.extra.substr(colon + 1)};
    context_->setTimeout(std::chrono::minutes{2});
    context_->connectFullMesh(store, device);
  }

  int ranks() const override { return context_->size; }

  std::vector<RankBuffer> allocate(std::size_t bytes) override {
    data_ = static_cast<float*>(memory_.allocate(bytes));
    return {{context_->rank, data_}};
  }
  void release() override { memory_.release(); }

  void barrier() override {
    gloo::BarrierOptions options{context_};
    options.setTag(++tag_);
    gloo::barrier(options);
  }

  void all_reduce(DataType /*f32*/, std::size_t count, int times) override {
    for (int i = 0; i < times; ++i) {
      gloo::AllreduceOptions options{context_};
      options.setOutput(data_, count);
      options.setReduceFunction(
          static_cast<void (*)(void*, const void*, const void*, std::size_t)>(gloo::sum<float>));
      options.setTag(++tag_);
      gloo::allreduce(options);
    }
  }

 private:
  std::shared_ptr<gloo::rendezvous::Context> context_;
  OrdinaryMemory memory_;
  float* data_ = nullptr;
  std::uint32_t tag_ = 0;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  return contender_main(argc, argv, [](const WorkerArguments& arguments) {
    return std::make_unique<GlooContender>(arguments);
  });
}
