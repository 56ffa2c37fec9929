// mpi_stream_contender.cc - like stream_contender.cc, with MPI's point-to-point messages.
//
// EXTRA is the size of a segment in bytes; kWindow segments are in flight in each direction.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <string>

#include "bench/allreduce/contender.h"

namespace sluice::bench {
namespace {

constexpr int kWindow = 8;

class MpiStreamContender : public Contender {
 public:
  explicit MpiStreamContender(const WorkerArguments& arguments)
      : segment_{std::stoul(arguments.extra)},
        sent_(segment_ * kWindow),
        received_(segment_ * kWindow) {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  ~MpiStreamContender() override { MPI_Finalize(); }
  MpiStreamContender(const MpiStreamContender&) = delete;
  MpiStreamContender& operator=(const MpiStreamContender&) = delete;

  int ranks() const override { return ranks_; }
  bool supports(DataType /*type*/) const override { return true; }
  bool reduces() const override { return false; }
  std::vector<RankBuffer> allocate(std::size_t /*bytes*/) override {
    return {{rank_, sent_.data()}};
  }
  void release() override {}
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

  void all_reduce(DataType type, std::size_t count, int times) override {
    const auto ranks = static_cast<std::size_t>(ranks_);
    const std::size_t bytes = 2 * (ranks - 1) * count * size_of(type) / ranks;
    for (int i = 0; i < times; ++i) exchange(std::max<std::size_t>(bytes, 1));
  }

 private:
  // A slot of the window is free again when both of its messages are complete.
  void exchange(std::size_t bytes) {
    std::array<std::array<MPI_Request, 2>, kWindow> window;
    window.fill({MPI_REQUEST_NULL, MPI_REQUEST_NULL});
    std::size_t slot = 0;
    for (std::size_t from = 0; from < bytes; from += segment_, slot = (slot + 1) % kWindow) {
      MPI_Waitall(2, window[slot].data(), MPI_STATUSES_IGNORE);
      const auto length = static_cast<int>(std::min(segment_, bytes - from));
      MPI_Irecv(received_.data() + slot * segment_, length, MPI_BYTE, (rank_ + ranks_ - 1) % ranks_,
                0, MPI_COMM_WORLD, &window[slot][0]);
      MPI_Isend(sent_.data() + slot * segment_, length, MPI_BYTE, (rank_ + 1) % ranks_, 0,
                MPI_COMM_WORLD, &window[slot][1]);
    }
    MPI_Waitall(2 * kWindow, window[0].data(), MPI_STATUSES_IGNORE);
  }

  std::size_t segment_;
  std::vector<char> sent_;
  std::vector<char> received_;
  int rank_ = 0;
  int ranks_ = 1;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  return contender_main(argc, argv, [](const WorkerArguments& arguments) {
    return std::make_unique<MpiStreamContender>(arguments);
  });
}
