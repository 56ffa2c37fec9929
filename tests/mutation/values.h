// values.h - what the interpreter's buffers hold: contributions that cannot be mistaken.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/schedule.h"

namespace sluice::mutation {

constexpr std::uint64_t scramble(std::uint64_t x) {  // the finaliser of splitmix64
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// A contribution that no sum of others equals, and the bits that a floating-point sum would leave:
// an addition that commutes and does not associate.
struct Number {
  std::uint64_t sum = 0;
  std::uint64_t bits = 0;

  Number() = default;
  Number(Rank rank, int chunk)
      : sum{scramble(static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint64_t>(chunk))},
        bits{sum} {}
  bool adds_up_to(const Number& total) const { return sum == total.sum; }
  Number& operator+=(const Number& other) {
    bits = *this == Number{} ? other.bits : scramble(bits + other.bits);
    sum += other.sum;
    return *this;
  }
  friend bool operator==(const Number&, const Number&) = default;
};

// A sum spelt out, "((0.7+1.7)+2.7)": for schedules that declare an order.
struct Term {
  std::string text;

  Term() = default;
  Term(Rank rank, int chunk) : text{std::to_string(rank) + "." + std::to_string(chunk)} {}
  bool adds_up_to(const Term& total) const { return text == total.text; }
  Term& operator+=(const Term& other) {
    text = text.empty() ? other.text : "(" + text + "+" + other.text + ")";
    return *this;
  }
  friend bool operator==(const Term&, const Term&) = default;
};

}  // namespace sluice::mutation
