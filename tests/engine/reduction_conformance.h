// reduction_conformance.h - the conformance tests of every type and every operation that is legal
// for it, compared with naive functions. Every rank calls each function.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/convert.h"
#include "tests/engine/conformance.h"

namespace sluice::engine::conformance {

inline constexpr ReduceOp kOps[] = {ReduceOp::Sum, ReduceOp::Mean,    ReduceOp::Min,
                                    ReduceOp::Max, ReduceOp::Product, ReduceOp::And,
                                    ReduceOp::Or,  ReduceOp::Xor};

// Elements of one type. T holds one: the bits of a 16-bit float, a byte for a truth value. Value
// computes with one: double for floats, and 64 bits for all others, of which the low ones count.
template <class T, class Value>
struct TypeTest {
  DataType type;

  // Differs between ranks and test. Sums, means and products of floats are exact before the
  // last rounding: small integers, and powers of two whose product stays in the range of an f16.
  Value input(ReduceOp op, Rank rank, std::size_t i) const {
    std::uint64_t bits = (i + 1) * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(rank) * 0xBF58;
    bits = (bits ^ bits >> 29U) * 0xD6E8FEB86659FD93U;
    bits ^= bits >> 32U;
    if (type == DataType::Bool) return static_cast<Value>(bits & 1U);
    if constexpr (std::is_same_v<Value, double>) {
      const double sign = (bits & 8U) != 0 ? -1 : 1;
      return op == ReduceOp::Product ? sign * (std::array{0.5, 1.0, 2.0}[bits % 3])
                                     : sign * static_cast<double>(bits % 16);
    } else {
      return op == ReduceOp::Mean ? conformance::input(rank, i) : static_cast<T>(bits);
    }
  }

  T stored(Value value) const {
    if (type != DataType::F16 && type != DataType::BF16) return static_cast<T>(value);
    const auto wide = static_cast<float>(value);
    T narrow{};
    (void)kernels::narrow(type, &narrow, &wide, 1);
    return narrow;
  }

  static Value combined(ReduceOp op, Value a, Value b) {
    if (op == ReduceOp::Min) return std::min(a, b);
    if (op == ReduceOp::Max) return std::max(a, b);
    if constexpr (std::is_same_v<Value, double>) {
      return op == ReduceOp::Product ? a * b : a + b;
    } else {
      const auto x = static_cast<std::uint64_t>(a);
      const auto y = static_cast<std::uint64_t>(b);
      return static_cast<Value>(op == ReduceOp::Product ? x * y
                                : op == ReduceOp::And   ? x & y
                                : op == ReduceOp::Or    ? x | y
                                : op == ReduceOp::Xor   ? x ^ y
                                                        : x + y);
    }
  }

  Value reduced(ReduceOp op, int ranks, std::size_t i) const {
    Value value = input(op, 0, i);
    for (Rank rank = 1; rank < ranks; ++rank) value = combined(op, value, input(op, rank, i));
    if (op != ReduceOp::Mean) return value;
    if (type == DataType::F64) return value * (Value{1} / ranks);
    if constexpr (std::is_same_v<Value, double>) {
      return static_cast<float>(value) * static_cast<float>(1.0 / ranks);
    } else {
      return value / ranks;
    }
  }

  void run_and_check(Communicator& comm, Collective collective, std::size_t count, ReduceOp op,
                     std::string_view algorithm = {}) const {
    std::vector<T> data(count);
    for (std::size_t i = 0; i < count; ++i) data[i] = stored(input(op, comm.rank(), i));
    const Rank root = comm.size() - 1;
    start(comm, collective, {data.data(), count, type},
          {.op = op, .root = root, .algorithm = std::string{algorithm}})
        .wait();
    std::size_t wrong = 0;
    std::size_t first_wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto from = origin(comm, collective, root, count, i);
      if (!from) continue;
      const Value value = from->reduced ? reduced(op, comm.size(), i) : input(op, from->rank, i);
      if (data[i] != stored(value) && wrong++ == 0) first_wrong = i;
    }
    EXPECT_EQ(wrong, 0U) << name(collective) << " (" << name(op) << ") of " << count << ' '
                         << name(type) << " by \"" << algorithm << "\", rank " << comm.rank()
                         << " of " << comm.size() << ", the first wrong one " << first_wrong;
  }
};

// Calls f with the TypeTest of each type.
template <class F>
void for_every_type(F f) {
  f(TypeTest<float, double>{DataType::F32});
  f(TypeTest<double, double>{DataType::F64});
  f(TypeTest<std::uint16_t, double>{DataType::F16});
  f(TypeTest<std::uint16_t, double>{DataType::BF16});
  f(TypeTest<std::int32_t, std::int64_t>{DataType::I32});
  f(TypeTest<std::int64_t, std::int64_t>{DataType::I64});
  f(TypeTest<std::uint8_t, std::int64_t>{DataType::U8});
  f(TypeTest<std::int8_t, std::int64_t>{DataType::I8});
  f(TypeTest<std::uint8_t, std::int64_t>{DataType::Bool});
}

inline void every_type_and_operation(Communicator& comm) {
  for_every_type([&](const auto& test) {
    for (const std::size_t count : {0, 1, 13, 1000}) {
      for (const ReduceOp op : kOps) {
        if (!is_legal(test.type, op)) continue;
        test.run_and_check(comm, Collective::AllReduce, count, op);
      }
      const ReduceOp op = test.type == DataType::Bool ? ReduceOp::Xor : ReduceOp::Product;
      for (const Collective collective : kCollectives)
        test.run_and_check(comm, collective, count, op);
    }
  });
}

inline void every_operation_by_every_algorithm(Communicator& comm) {
  constexpr std::size_t kCount = 3001;
  for (const Algorithm& algorithm : built_in_algorithms()) {
    if (!algorithm.supports(Collective::AllReduce)) continue;
    for (const ReduceOp op : kOps) {
      const TypeTest<std::int64_t, std::int64_t> integers{DataType::I64};
      integers.run_and_check(comm, Collective::AllReduce, kCount, op, algorithm.name);
      if (!is_legal(DataType::F64, op)) continue;
      const TypeTest<double, double> floats{DataType::F64};
      floats.run_and_check(comm, Collective::AllReduce, kCount, op, algorithm.name);
    }
  }
}

// Each rank throws before it sends anything, so the communicator stays usable.
inline void illegal_operations_are_errors(Communicator& comm) {
  std::vector<std::int64_t> bytes(4);
  for_every_type([&](const auto& test) {
    for (const ReduceOp op : kOps) {
      if (is_legal(test.type, op)) continue;
      const CollectiveOptions options{.op = op};
      const Elements data{bytes.data(), 4, test.type};
      for (const Collective collective : kCollectives) {
        if (!is_reduction(collective)) continue;
        try {
          start(comm, collective, data, options).wait();
          ADD_FAILURE() << name(collective) << ": " << name(op) << " of " << name(test.type);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), Code::InvalidArgument);
          EXPECT_EQ(error.what(), std::string{name(collective)} + ": " + std::string{name(op)} +
                                      " of " + std::string{name(test.type)} +
                                      " is not possible; docs/types.md lists what is");
        }
      }
      start(comm, Collective::Broadcast, data, options).wait();
    }
  });
}

}  // namespace sluice::engine::conformance
