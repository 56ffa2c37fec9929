// conformance.h - the tests that every transport must pass: all collectives by all algorithms, with
// odd sizes, compared with a naive sum. Every rank calls each function.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/algorithms.h"
#include "sluice/communicator.h"

namespace sluice::engine::conformance {

// The input. It differs between ranks and elements, and is small enough that sums are exact in f32.
inline std::int64_t input(Rank rank, std::size_t i) {
  return static_cast<std::int64_t>((i * 7 + static_cast<std::size_t>(rank) * 1009) % 4093) - 1000;
}

inline std::int64_t naive_sum(int ranks, std::size_t i) {
  std::int64_t sum = 0;
  for (Rank rank = 0; rank < ranks; ++rank) sum += input(rank, i);
  return sum;
}

// The contribution whose value, or the sum over all ranks, must be element i of this rank after the
// collective; nullopt where the collective promises none.
struct Origin {
  bool reduced = false;
  Rank rank = 0;  // unless reduced
};
inline std::optional<Origin> origin(const Communicator& comm, Collective collective, Rank root,
                                    std::size_t count, std::size_t i) {
  const auto owner = [&] {
    Rank rank = 0;
    while (comm.slice(count, rank).first + comm.slice(count, rank).count <= i) ++rank;
    return rank;
  };
  switch (collective) {
    case Collective::AllReduce:
      return Origin{.reduced = true};
    case Collective::ReduceScatter:
      return owner() == comm.rank() ? std::optional{Origin{.reduced = true}} : std::nullopt;
    case Collective::AllGather:
      return Origin{.rank = owner()};
    case Collective::Broadcast:
      return Origin{.rank = root};
    case Collective::Reduce:
      return comm.rank() == root ? std::optional{Origin{.reduced = true}} : std::nullopt;
  }
  return std::nullopt;
}

inline Work start(Communicator& comm, Collective collective, Elements data,
                  const CollectiveOptions& options) {
  switch (collective) {
    case Collective::AllReduce:
      return comm.all_reduce(data, options);
    case Collective::ReduceScatter:
      return comm.reduce_scatter(data, options);
    case Collective::AllGather:
      return comm.all_gather(data, options);
    case Collective::Broadcast:
      return comm.broadcast(data, options);
    default:
      return comm.reduce(data, options);
  }
}

template <class T>
void run_and_check(Communicator& comm, Collective collective, std::span<T> data,
                   const CollectiveOptions& options) {
  const std::size_t count = data.size();
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<T>(input(comm.rank(), i));
  start(comm, collective, data, options).wait();
  std::size_t wrong = 0;
  std::size_t first_wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = origin(comm, collective, options.root, count, i);
    if (!from) continue;
    const std::int64_t value = from->reduced ? naive_sum(comm.size(), i) : input(from->rank, i);
    if (data[i] != static_cast<T>(value) && wrong++ == 0) first_wrong = i;
  }
  EXPECT_EQ(wrong, 0U) << name(collective) << " by " << options.algorithm << ", rank "
                       << comm.rank() << " of " << comm.size() << ", " << count
                       << " elements, the first wrong one " << first_wrong;
}

inline void all_algorithms_and_collectives(Communicator& comm) {
  constexpr std::size_t kMost = 100'003;
  const Pool pool = comm.allocate(kMost * sizeof(float));
  std::vector<float> foreign(kMost);
  for (const Algorithm& algorithm : built_in_algorithms()) {
    for (const Collective collective : algorithm.collectives) {
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, std::size_t{13}, std::size_t{1000}, kMost}) {
        const CollectiveOptions options{.root = comm.size() - 1,
                                        .algorithm = std::string{algorithm.name}};
        run_and_check(comm, collective, pool.as<float>().first(count), options);
        run_and_check(comm, collective, std::span{foreign}.first(count), options);
      }
    }
  }
}

// Input and output apart: the input stays as it was, and may change once the call has returned.
inline void input_and_output_apart(Communicator& comm) {
  constexpr float kUntouched = -77777;
  const Rank root = comm.size() / 2;
  for (const std::size_t count : {0, 1, 13, 1000, 100'003}) {
    const Communicator::Slice own = comm.slice(count, comm.rank());
    std::vector<float> whole(count);
    for (std::size_t i = 0; i < count; ++i) whole[i] = static_cast<float>(input(comm.rank(), i));
    const std::vector<float> part(
        whole.begin() + static_cast<std::ptrdiff_t>(own.first),
        whole.begin() + static_cast<std::ptrdiff_t>(own.first + own.count));
    const std::vector<float> before = whole;
    std::vector<float> sum(count, kUntouched);
    std::vector<float> sum_part(own.count, kUntouched);
    std::vector<float> gathered(count, kUntouched);
    std::vector<float> rooted(comm.rank() == root ? count : 0, kUntouched);
    Work works[] = {comm.all_reduce(whole, sum), comm.reduce_scatter(whole, sum_part),
                    comm.all_gather(part, gathered), comm.reduce(whole, rooted, {.root = root})};
    EXPECT_EQ(whole, before);
    std::fill(whole.begin(), whole.end(), kUntouched);
    for (Work& work : works) work.wait();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto expected = static_cast<float>(naive_sum(comm.size(), i));
      wrong += sum[i] != expected ? 1 : 0;
      if (own.first <= i && i < own.first + own.count)
        wrong += sum_part[i - own.first] != expected ? 1 : 0;
      if (comm.rank() == root) wrong += rooted[i] != expected ? 1 : 0;
      const auto from = origin(comm, Collective::AllGather, 0, count, i);
      wrong += gathered[i] != static_cast<float>(input(from->rank, i)) ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0U) << count << " elements, rank " << comm.rank() << " of " << comm.size();
  }
}

// Each rank throws before it sends anything, so the communicator stays usable.
inline void wrong_arguments_are_errors(Communicator& comm) {
  const auto expect_error = [&](const char* what, const auto& call) {
    try {
      (void)call();
      ADD_FAILURE() << what << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::InvalidArgument);
      EXPECT_NE(std::string{error.what()}.find(what), std::string::npos) << error.what();
    }
  };
  const Elements none{nullptr, 4, DataType::F32};
  std::vector<float> data(4 * static_cast<std::size_t>(comm.size()));
  std::vector<float> other(data.size());
  std::vector<double> doubles(data.size());
  for (const Collective collective : kCollectives)
    expect_error("the pointer is null", [&] { return start(comm, collective, none, {}); });
  expect_error("the input's pointer is null", [&] { return comm.all_reduce(none, data); });
  expect_error("the output's pointer is null", [&] { return comm.all_reduce(data, none); });
  expect_error("the input is of f32 but the output of f64",
               [&] { return comm.all_reduce(data, doubles); });
  expect_error("elements instead of",
               [&] { return comm.all_reduce(data, std::span{other}.first(3)); });
  expect_error("elements instead of",
               [&] { return comm.reduce_scatter(data, std::span<float>{}); });
  expect_error("elements instead of", [&] { return comm.all_gather(std::span<float>{}, data); });
  expect_error("overlap", [&] { return comm.all_reduce(data, data); });
  start(comm, Collective::AllReduce, {nullptr, 0, DataType::F32}, {}).wait();
  run_and_check(comm, Collective::AllReduce, std::span{data}, {});
}

inline void some_ranks_in_pools_and_others_not(Communicator& comm) {
  constexpr std::size_t kCount = 70'001;
  const Pool pool = comm.allocate(kCount * sizeof(float));
  std::vector<float> foreign(kCount);
  const std::span<float> data = comm.rank() % 2 == 0 ? pool.as<float>() : foreign;
  for (const char* algorithm : {"direct", "ring", "double_tree", "halving_doubling"}) {
    run_and_check(comm, Collective::AllReduce, data.first(kCount), {.algorithm = algorithm});
  }
}

inline void all_ranks_hold_the_same_bits(Communicator& comm) {
  constexpr std::size_t kCount = 4099;
  const Pool pool = comm.allocate(kCount * sizeof(float));
  const auto data = pool.as<float>();
  for (const Algorithm& algorithm : built_in_algorithms()) {
    for (const DataType type : {DataType::F32, DataType::F16, DataType::BF16}) {
      // The sums of these values are rounded differently in every order.
      std::uint64_t state = 88172645463325252ULL + static_cast<std::uint64_t>(comm.rank());
      for (std::size_t i = 0; i < kCount * sizeof(float) / size_of(type); ++i) {
        state ^= state << 13U;
        state ^= state >> 7U;
        state ^= state << 17U;
        const auto f = static_cast<float>(state >> 40U) / 16777216.0F;
        if (type == DataType::F32) {
          data[i] = f;
        } else {  // an f16 or bf16 between 1 and 2
          const std::uint16_t base = type == DataType::F16 ? 0x3C00 : 0x3F80;
          const std::uint16_t mask = type == DataType::F16 ? 0x03FF : 0x007F;
          pool.as<std::uint16_t>()[i] = static_cast<std::uint16_t>(base | ((state >> 20U) & mask));
        }
      }
      const std::size_t count = kCount * sizeof(float) / size_of(type);
      comm.all_reduce({data.data(), count, type}, {.algorithm = std::string{algorithm.name}})
          .wait();
      // The bits are equal on all ranks exactly when, taken as integers, their minimum and maximum
      // over the ranks are equal.
      std::vector<std::int32_t> least(kCount);
      std::memcpy(least.data(), data.data(), kCount * sizeof(float));
      std::vector<std::int32_t> most = least;
      comm.all_reduce(least, {.op = ReduceOp::Min}).wait();
      comm.all_reduce(most, {.op = ReduceOp::Max}).wait();
      EXPECT_EQ(least, most) << algorithm.name << " " << name(type);
    }
  }
}

}  // namespace sluice::engine::conformance
