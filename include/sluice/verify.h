// verify.h - proves that a schedule is right under every order that the execution model allows.
#pragma once

#include <compare>
#include <cstdint>
#include <numeric>
#include <string>

#include "sluice/schedule.h"
#include "sluice/version.h"

namespace sluice {

// An exact ratio, for shares of a buffer. Closed forms such as 2(n-1)/n are compared with counted
// schedules; doubles would need a tolerance, which would hide an off-by-one error at large n.
// Always in lowest terms. REQUIRES: the denominator is positive and values stay within 64 bits.
class Fraction {
 public:
  constexpr Fraction(std::int64_t numerator = 0, std::int64_t denominator = 1)
      : numerator_{numerator}, denominator_{denominator} {
    const std::int64_t divisor = std::gcd(numerator, denominator);
    if (divisor > 1) {
      numerator_ /= divisor;
      denominator_ /= divisor;
    }
  }

  constexpr std::int64_t numerator() const { return numerator_; }
  constexpr std::int64_t denominator() const { return denominator_; }
  constexpr double value() const {
    return static_cast<double>(numerator_) / static_cast<double>(denominator_);
  }

  friend constexpr Fraction operator+(Fraction a, Fraction b) {
    return {a.numerator_ * b.denominator_ + b.numerator_ * a.denominator_,
            a.denominator_ * b.denominator_};
  }
  friend constexpr Fraction operator*(Fraction a, Fraction b) {
    const Fraction x{a.numerator_, b.denominator_};
    const Fraction y{b.numerator_, a.denominator_};
    return {x.numerator_ * y.numerator_, x.denominator_ * y.denominator_};
  }
  friend constexpr bool operator==(Fraction a, Fraction b) = default;
  friend constexpr std::strong_ordering operator<=>(Fraction a, Fraction b) {
    return a.numerator_ * b.denominator_ <=> b.numerator_ * a.denominator_;
  }

 private:
  std::int64_t numerator_;
  std::int64_t denominator_;
};

// "3/2", or "2" when the denominator is 1.
SLUICE_API std::string to_string(Fraction fraction);

// The result of verify().
struct Proof {
  bool proven = false;
  std::string reason;          // if not proven, one sentence: rank, step, chunk and the error
  int steps = 0;               // of the longest program
  Fraction bytes_factor;       // bytes sent by the busiest rank / bytes of the buffer
  std::int64_t transfers = 0;  // sends in all programs
};

// Proves (a) to (d) and (f) of docs/execution-model.md, or explains the error in one sentence.
// Does not throw, however wrong the schedule is. Memory: a few times the schedule, plus ranks^2
// bits.
SLUICE_API Proof verify(const Schedule& schedule);

// The bytes that a program sends / bytes of the buffer.
SLUICE_API Fraction sent_share(const Program& program);

}  // namespace sluice
