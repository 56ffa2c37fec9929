#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/format.h"

namespace sluice::base {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

struct Unit {
  std::string_view suffix;
  double bytes;
};
constexpr Unit kUnits[] = {{"", 1},
                           {"B", 1},
                           {"K", 1024.0},
                           {"M", 1048576.0},
                           {"G", 1073741824.0},
                           {"T", 1099511627776.0},
                           {"KB", 1e3},
                           {"MB", 1e6},
                           {"GB", 1e9},
                           {"TB", 1e12}};

}  // namespace

std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr std::size_t kLongestWord = 64;  // a longer word is not a typing error
  if (word.size() > kLongestWord) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 2) + 1;
  for (const std::string_view candidate : candidates) {
    const bool begins_alike = word.size() >= 3 && candidate.starts_with(word);
    const std::size_t distance = begins_alike ? 1 : edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

Result<std::int64_t> parse_integer(std::string_view text, std::int64_t least, std::int64_t most,
                                   std::string_view what) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || value < least || value > most) {
    return Status{Code::InvalidArgument,
                  base::format("{} must be a whole number from {} to {}, not {}", what, least, most,
                               quote(text))};
  }
  return value;
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  constexpr double kMost = 1125899906842624.0;  // 1 PiB
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  const auto* const unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                        [&](const Unit& u) { return u.suffix == suffix; });
  if (error != std::errc{} || unit == std::end(kUnits) || !(number >= 0) ||
      number * unit->bytes > kMost) {
    return Status{
        Code::InvalidArgument,
        base::format("{} is not a size: give bytes, or a number with K, M, G (1,024) or KB, "
                     "MB, GB (1,000), up to 1024T",
                     quote(text))};
  }
  return static_cast<std::int64_t>(std::llround(number * unit->bytes));
}

std::string format_bytes(double bytes) {
  constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t i = 0;
  for (; bytes >= 1024 && i + 1 < std::size(kNames); ++i) bytes /= 1024;
  const bool whole = bytes == std::floor(bytes);
  return whole ? base::format("{:.0f} {}", bytes, kNames[i])
               : base::format("{:.1f} {}", bytes, kNames[i]);
}

std::string format_seconds(double seconds) {
  if (seconds >= 1) return base::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return base::format("{:.3g} ms", seconds * 1e3);
  return base::format("{:.3g} us", seconds * 1e6);
}

Result<std::vector<int>> parse_list(std::string_view text, int least, int most,
                                    std::string_view what) {
  std::vector<int> numbers;
  std::string_view rest = text;
  while (true) {
    const std::string_view item = rest.substr(0, rest.find(','));
    const std::size_t dash = item.find('-', 1);  // a dash at the front is a minus sign
    const auto first = parse_integer(item.substr(0, dash), least, most, what);
    if (!first.ok()) return first.status();
    const auto last = dash == std::string_view::npos
                          ? first
                          : parse_integer(item.substr(dash + 1), least, most, what);
    if (!last.ok()) return last.status();
    if (last.value() < first.value()) {
      return Status{Code::InvalidArgument,
                    base::format("{} {}: the range ends before it begins", what, quote(item))};
    }
    for (std::int64_t n = first.value(); n <= last.value(); ++n)
      numbers.push_back(static_cast<int>(n));
    if (item.size() == rest.size()) break;
    rest.remove_prefix(item.size() + 1);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::string to_hexadecimal(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4U)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

std::string quote(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string shown = "\"";
  for (const char c : text.substr(0, kShown)) {
    const bool printable = c >= ' ' && c <= '~';
    shown +=
        printable ? std::string(1, c) : base::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return shown + (text.size() > kShown ? "...\"" : "\"");
}

}  // namespace sluice::base
