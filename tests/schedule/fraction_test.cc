#include <gtest/gtest.h>

#include "sluice/verify.h"

namespace sluice::schedule {
namespace {

TEST(Fraction, KeepsToLowestTerms) {
  EXPECT_EQ(Fraction(6, 4), Fraction(3, 2));
  EXPECT_EQ(Fraction(0, 7), Fraction(0));
  EXPECT_EQ(to_string(Fraction(6, 4)), "3/2");
  EXPECT_EQ(to_string(Fraction(4, 2)), "2");
}

TEST(Fraction, AddsMultipliesAndCompares) {
  EXPECT_EQ(Fraction(1, 3) + Fraction(1, 6), Fraction(1, 2));
  EXPECT_EQ(Fraction(2, 3) * Fraction(9, 4), Fraction(3, 2));
  EXPECT_LT(Fraction(1, 3), Fraction(1, 2));
  EXPECT_GT(Fraction(1022, 512), Fraction(1021, 512));
  EXPECT_DOUBLE_EQ(Fraction(3, 8).value(), 0.375);
}

}  // namespace
}  // namespace sluice::schedule
