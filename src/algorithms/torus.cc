// torus.cc - rings along the rows and columns of a grid (Mikami et al., arXiv 1811.05233; Ying et
// al., arXiv 1811.06992).
//   (1) reduce-scatter along the rows; (2) all-reduce of the remaining slice along the columns;
//   (3) all-gather along the rows. With rows of x ranks and columns of y:
//   2(x-1) + 2(y-1) steps; each rank sends 2(n-1)/n of the buffer.
//
//   2 rows of 3:    0 - 1 - 2     (1), (3) among 0 1 2 and among 3 4 5, slices of 2 chunks
//                   |   |   |     (2) among 0 3, among 1 4, among 2 5, single chunks
//                   3 - 4 - 5
#include <vector>

#include "algorithms/builtin.h"

namespace sluice::algorithms {
namespace {

struct Grid {
  int x;  // ranks in a row
  int y;  // rows
};

Grid grid_of(const Shape& shape) {
  return {shape.grid.front(), static_cast<int>(shape.grid.size())};
}

}  // namespace

Program torus(const Shape& shape, Rank rank) {
  const auto [x, y] = grid_of(shape);
  const int column = rank % x;
  const int row = rank / x;
  std::vector<Rank> row_ranks;
  std::vector<Rank> column_ranks;
  for (int i = 0; i < x; ++i) row_ranks.push_back(row * x + i);
  for (int i = 0; i < y; ++i) column_ranks.push_back(i * x + column);
  const Embedding along_row{.ranks = row_ranks, .chunks_each = y};
  const Embedding along_column{.ranks = column_ranks, .first_chunk = column * y};

  Program program{Chunking{x * y}};
  embed(program, ring({Collective::ReduceScatter, x}, column), along_row);
  embed(program, ring({Collective::AllReduce, y}, row), along_column);
  embed(program, ring({Collective::AllGather, x}, column), along_row);
  return program;
}

int torus_steps(const Shape& shape) {
  const auto [x, y] = grid_of(shape);
  return 2 * (x + y - 2);
}

Fraction torus_sent(const Shape& shape, Rank /*rank*/) {
  return {2 * (shape.ranks - 1), shape.ranks};
}

void torus_traffic(const Shape& shape, TrafficSink& sink) {
  const int x = grid_of(shape).x;
  const int y = grid_of(shape).y;
  const int n = x * y;
  const auto rows = [&](bool reduces) {
    if (x == 1) return;
    for (Rank rank = 0; rank < n; ++rank) {
      sink.message(rank, rank / x * x + (rank % x + 1) % x, 1.0 / x);
      if (reduces) sink.reduce(rank, 1.0 / x);
    }
    sink.end_step(x - 1);
  };
  const auto columns = [&](bool reduces) {
    if (y == 1) return;
    for (Rank rank = 0; rank < n; ++rank) {
      sink.message(rank, (rank + x) % n, 1.0 / n);
      if (reduces) sink.reduce(rank, 1.0 / n);
    }
    sink.end_step(y - 1);
  };
  rows(true);
  columns(true);
  columns(false);
  rows(false);
}

Marks torus_marks(const Shape& shape, Rank /*rank*/) {
  const auto [x, y] = grid_of(shape);
  // The last reduce step of the columns, or of the rows if there is only one, completes a chunk.
  // That ring returns it to its last source if it has two ranks.
  const int last_reduce = x + y - 3;
  Marks marks{.whole_sum = [=](int step, const Range&) { return step == last_reduce; }};
  if ((y > 1 ? y : x) == 2)
    marks.push = [=](int step, const Range&) { return step == last_reduce + 1; };
  return marks;
}

}  // namespace sluice::algorithms
