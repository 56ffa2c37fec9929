// mpi_contender.cc - a rank of an MPI library; built once per library.
#include <mpi.h>

#include "bench/allreduce/contender.h"

namespace sluice::bench {
namespace {

class MpiContender : public Contender {
 public:
  MpiContender() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  ~MpiContender() override { MPI_Finalize(); }
  MpiContender(const MpiContender&) = delete;
  MpiContender& operator=(const MpiContender&) = delete;

  int ranks() const override { return ranks_; }

  std::vector<RankBuffer> allocate(std::size_t bytes) override {
    data_ = memory_.allocate(bytes);
    return {{rank_, data_}};
  }
  void release() override { memory_.release(); }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

  void all_reduce(DataType /*f32*/, std::size_t count, int times) override {
    for (int i = 0; i < times; ++i) {
      MPI_Allreduce(MPI_IN_PLACE, data_, static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
    }
  }

 private:
  int rank_ = 0;
  int ranks_ = 1;
  OrdinaryMemory memory_;
  void* data_ = nullptr;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  return contender_main(argc, argv,
                        [](const WorkerArguments&) { return std::make_unique<MpiContender>(); });
}
