#include "cli/bench/scaling.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "sluice/status.h"

namespace sluice::cli {

std::vector<ScalingRow> scaling_rows(const std::vector<int>& ranks, const std::vector<int>& batches,
                                     bool strong) {
  std::vector<ScalingRow> rows;
  for (const int batch : batches) {
    const int global = batch * ranks.front();
    for (const int count : ranks) {
      if (strong && global % count != 0) {
        base::refuse(base::format(
            "cannot divide a global batch of {} among {} ranks: give a --batch that is a multiple "
            "of {}",
            global, count, count));
      }
      rows.push_back({.ranks = count, .batch = strong ? global / count : batch});
    }
  }
  return rows;
}

void set_efficiencies(std::vector<ScalingRow>& rows, bool strong) {
  const auto alike = [&](const ScalingRow& a, const ScalingRow& b) {
    return strong ? a.batch * a.ranks == b.batch * b.ranks : a.batch == b.batch;
  };
  for (ScalingRow& row : rows) {
    const ScalingRow* first = &row;
    for (const ScalingRow& other : rows) {
      if (alike(row, other) && other.ranks < first->ranks) first = &other;
    }
    const double one = first->images_per_s / first->ranks;
    row.efficiency = one > 0 ? row.images_per_s / (one * row.ranks) : 0;
  }
}

std::string scaling_text(const std::vector<ScalingRow>& rows) {
  std::string text = base::format("{:>6} {:>14} {:>13} {:>12} {:>11}\n", "ranks", "batch per rank",
                                  "global batch", "images/s", "efficiency");
  for (const ScalingRow& row : rows) {
    text += base::format("{:>6} {:>14} {:>13} {:>12} {:>10.1f}%\n", row.ranks, row.batch,
                         row.batch * row.ranks, speed_text(row.images_per_s), 100 * row.efficiency);
  }
  return text;
}

nlohmann::ordered_json scaling_json(const std::vector<ScalingRow>& rows) {
  auto document = nlohmann::ordered_json::array();
  for (const ScalingRow& row : rows) {
    document.push_back({{"ranks", row.ranks},
                        {"batch", row.batch},
                        {"images_per_s", row.images_per_s},
                        {"efficiency", row.efficiency}});
  }
  return document;
}

namespace {

constexpr int kTenths = 10;  // lines of the grid

// The position of a point between the fewest ranks (0) and the most (1), on a logarithmic axis.
double position_of(const ScalingCurve& curve, double ranks) {
  const double first = std::log2(curve.points.front().ranks);
  const double last = std::log2(curve.points.back().ranks);
  return last > first ? (std::log2(ranks) - first) / (last - first) : 0.5;
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

// A line of words centred on columns; skips a word that would touch the previous one.
class Labels {
 public:
  void put(int column, const std::string& word) {
    const int begin = std::max(0, column - static_cast<int>(word.size()) / 2);
    if (begin < next_) return;
    line_.resize(static_cast<std::size_t>(begin), ' ');
    line_ += word;
    next_ = static_cast<int>(line_.size()) + 1;
  }
  const std::string& line() const { return line_; }

 private:
  std::string line_;
  int next_ = 0;
};

}  // namespace

std::string plot_text(const ScalingCurve& curve) {
  constexpr int kColumns = 60;
  constexpr char kEmpty = ' ';
  std::vector<std::string> rows(kTenths + 1, std::string(kColumns + 1, kEmpty));
  const auto row_of = [&](double efficiency) {
    return static_cast<std::size_t>(
        kTenths - std::clamp(static_cast<int>(std::lround(efficiency * kTenths)), 0, kTenths));
  };
  const auto column_of = [&](double ranks) {
    return static_cast<std::size_t>(std::lround(position_of(curve, ranks) * kColumns));
  };
  for (std::size_t i = 1; i < curve.points.size(); ++i) {
    const ScalingPoint& a = curve.points[i - 1];
    const ScalingPoint& b = curve.points[i];
    const std::size_t from = column_of(a.ranks);
    const std::size_t to = column_of(b.ranks);
    for (std::size_t x = from; x < to; ++x) {
      const double part = static_cast<double>(x - from) / static_cast<double>(to - from);
      rows[row_of(a.efficiency + part * (b.efficiency - a.efficiency))][x] = '.';
    }
  }
  Labels labels;
  for (const ScalingPoint& point : curve.points) {
    rows[row_of(point.efficiency)][column_of(point.ranks)] = 'o';
    labels.put(static_cast<int>(column_of(point.ranks)), base::format("{}", point.ranks));
  }
  std::string text = base::format("efficiency over ranks, simulated: {}\n", curve.title);
  for (int tenth = kTenths; tenth >= 0; --tenth) {
    std::string row = rows[static_cast<std::size_t>(kTenths - tenth)];
    row.erase(row.find_last_not_of(kEmpty) + 1);
    text += base::format("{:>4}% |{}\n", tenth * 100 / kTenths, row);
  }
  text += base::format("      +{}\n       {}\n", std::string(kColumns + 1, '-'), labels.line());
  return text;
}

std::string plot_svg(const ScalingCurve& curve) {
  constexpr double kWidth = 640;
  constexpr double kHeight = 400;
  constexpr double kLeft = 60;
  constexpr double kTop = 50;
  constexpr double kRight = kWidth - 30;
  constexpr double kBottom = kHeight - 60;
  const auto x_of = [&](int ranks) { return kLeft + position_of(curve, ranks) * (kRight - kLeft); };
  const auto y_of = [&](double efficiency) {
    return kBottom - std::clamp(efficiency, 0.0, 1.0) * (kBottom - kTop);
  };
  std::string svg = base::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{}\" y=\"24\" font-size=\"15\">{} (simulated)</text>\n",
      kWidth, kHeight, kLeft, escaped(curve.title));
  for (int tenth = 0; tenth <= kTenths; tenth += 2) {
    const double y = y_of(static_cast<double>(tenth) / kTenths);
    svg += base::format(
        "<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}%</text>\n",
        kLeft, y, kRight, y, kLeft - 8, y + 4, tenth * 100 / kTenths);
  }
  std::string line;
  std::string marks;
  for (const ScalingPoint& point : curve.points) {
    const double x = x_of(point.ranks);
    const double y = y_of(point.efficiency);
    line += base::format("{}{:.1f},{:.1f}", line.empty() ? "" : " ", x, y);
    marks += base::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#0b6e99\"><title>{} ranks: {:.1f}%, "
        "{:.0f} images/s, simulated</title></circle>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.0f}%</text>\n"
        "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
        x, y, point.ranks, 100 * point.efficiency, point.images_per_s, x, y - 10,
        100 * point.efficiency, x, kBottom + 20, point.ranks);
  }
  svg += base::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"#0b6e99\" stroke-width=\"2\"/>\n", line);
  svg += marks;
  svg += base::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">ranks</text>\n"
      "<text x=\"18\" y=\"{}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {})\">efficiency"
      "</text>\n</svg>\n",
      (kLeft + kRight) / 2, kBottom + 44, (kTop + kBottom) / 2, (kTop + kBottom) / 2);
  return svg;
}

}  // namespace sluice::cli
