#include "sluice/fraction.h"

namespace sluice {

std::string to_string(Fraction fraction) {
  std::string text = std::to_string(fraction.numerator());
  if (fraction.denominator() != 1) text += "/" + std::to_string(fraction.denominator());
  return text;
}

}  // namespace sluice
