// generated.cc - the data sets that need no files: demo and random.

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "base/random.h"
#include "base/text.h"
#include "data/formats/formats.h"

namespace sluice::data {
namespace {

constexpr std::uint64_t kSeed = 0x536c756963650001;

struct Point {
  double x = 0;
  double y = 0;
};

Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
double dot(Point a, Point b) { return a.x * b.x + a.y * b.y; }

struct Segment {
  Point from;
  Point to;
};

// The distance from a point to the nearest line of a figure. Figures fill the square from -1 to 1.
// Only +, -, *, / and the square root are used: their results are the same on every machine.
double to_segment(Point p, const Segment& segment) {
  const Point along = segment.to - segment.from;
  const Point away = p - segment.from;
  const double t = std::clamp(dot(away, along) / dot(along, along), 0.0, 1.0);
  const Point rest{away.x - t * along.x, away.y - t * along.y};
  return std::sqrt(dot(rest, rest));
}

template <std::size_t count>
double to_segments(Point p, const std::array<Segment, count>& segments) {
  double nearest = 10;
  for (const Segment& segment : segments) nearest = std::min(nearest, to_segment(p, segment));
  return nearest;
}

constexpr double kRadius = 0.85;

double ring(Point p) { return std::abs(std::sqrt(dot(p, p)) - kRadius); }
double arch(Point p) {
  if (p.y <= 0) return ring(p);
  const Point foot{std::abs(p.x) - kRadius, p.y};
  return std::sqrt(dot(foot, foot));
}
double square(Point p) {
  constexpr double a = 0.75;
  return to_segments<4>(
      p, {{{{-a, -a}, {a, -a}}, {{a, -a}, {a, a}}, {{a, a}, {-a, a}}, {{-a, a}, {-a, -a}}}});
}
double triangle(Point p) {
  return to_segments<3>(
      p, {{{{0, -1}, {0.87, 0.5}}, {{0.87, 0.5}, {-0.87, 0.5}}, {{-0.87, 0.5}, {0, -1}}}});
}
double cross(Point p) { return to_segments<2>(p, {{{{-1, 0}, {1, 0}}, {{0, -1}, {0, 1}}}}); }
double bar(Point p) { return to_segment(p, {{0, -1}, {0, 1}}); }
double angle(Point p) {
  return to_segments<2>(p, {{{{-0.7, -0.8}, {-0.7, 0.7}}, {{-0.7, 0.7}, {0.8, 0.7}}}});
}
double tee(Point p) {
  return to_segments<2>(p, {{{{-0.9, -0.7}, {0.9, -0.7}}, {{0, -0.7}, {0, 1}}}});
}
double zigzag(Point p) {
  return to_segments<3>(
      p, {{{{-0.7, -0.8}, {0.7, -0.8}}, {{0.7, -0.8}, {-0.7, 0.8}}, {{-0.7, 0.8}, {0.7, 0.8}}}});
}
double rails(Point p) {
  return to_segments<2>(p, {{{{-0.55, -0.9}, {-0.55, 0.9}}, {{0.55, -0.9}, {0.55, 0.9}}}});
}

struct Figure {
  const char* name;
  double (*distance)(Point);
};

constexpr std::array kFigures = {
    Figure{"ring", ring},   Figure{"arch", arch},     Figure{"square", square},
    Figure{"cross", cross}, Figure{"angle", angle},   Figure{"triangle", triangle},
    Figure{"tee", tee},     Figure{"zigzag", zigzag}, Figure{"rails", rails},
    Figure{"bar", bar},
};

class Drawing {
 public:
  explicit Drawing(std::uint64_t sample) : random_{base::mixed({kSeed, sample})} {}

  double uniform(double least, double most) {
    return least + (most - least) * static_cast<double>(random_.next() >> 11U) * 0x1p-53;
  }
  bool coin() { return (random_.next() >> 63U) != 0; }
  std::uint64_t bits() { return random_.next(); }

  // A uniform direction, without sine and cosine.
  Point direction() {
    while (true) {
      const Point p{uniform(-1, 1), uniform(-1, 1)};
      const double length = std::sqrt(dot(p, p));
      if (length > 0.1 && length <= 1) return {p.x / length, p.y / length};
    }
  }

 private:
  base::Random random_;
};

// The part of a pixel that a line covers; the middle of the line is `distance` pixels away.
double coverage(double distance, double thickness) {
  return std::clamp(thickness / 2 - distance + 0.5, 0.0, 1.0);
}

}  // namespace

std::vector<std::string> demo_classes() {
  std::vector<std::string> names;
  for (const Figure& figure : kFigures) names.emplace_back(figure.name);
  return names;
}

void draw_demo(std::uint64_t sample, std::span<std::uint8_t> pixels) {
  assert(pixels.size() == std::size_t{kDemoSide} * kDemoSide);
  Drawing drawing{sample};
  const Figure& figure = kFigures[sample % kFigures.size()];
  const double size = drawing.uniform(7.5, 11);  // half the side of the figure, in pixels
  const double room = kDemoSide / 2.0 - size;
  const Point centre{kDemoSide / 2.0 + drawing.uniform(-room, room),
                     kDemoSide / 2.0 + drawing.uniform(-room, room)};
  const Point axis = drawing.direction();
  const double thickness = drawing.uniform(1.4, 2.4);
  const double background = drawing.uniform(60, 195);
  const double contrast = drawing.uniform(85, 120) * (drawing.coin() ? 1 : -1);
  const double noise = drawing.uniform(5, 16);
  // A scratch is fainter than a figure.
  const Point start{drawing.uniform(0, kDemoSide), drawing.uniform(0, kDemoSide)};
  const Point course = drawing.direction();
  const double length = drawing.uniform(3, 6);
  const Segment scratch{start, {start.x + length * course.x, start.y + length * course.y}};
  const double scratch_contrast = drawing.uniform(20, 40) * (drawing.coin() ? 1 : -1);

  std::size_t next = 0;
  for (int y = 0; y < kDemoSide; ++y) {
    std::uint64_t bits = 0;
    for (int x = 0; x < kDemoSide; ++x, ++next) {
      if (x % 4 == 0) bits = drawing.bits();
      const Point pixel{x + 0.5, y + 0.5};
      const Point p = pixel - centre;
      const Point turned{dot(p, axis) / size, (p.y * axis.x - p.x * axis.y) / size};
      double value = background;
      value += contrast * coverage(figure.distance(turned) * size, thickness);
      value += scratch_contrast * coverage(to_segment(pixel, scratch), 1.2);
      // The sum of two random bytes has a triangular distribution with deviation 104.
      value += noise / 104 * (static_cast<double>((bits & 255U) + ((bits >> 8U) & 255U)) - 255);
      bits >>= 16U;
      pixels[next] = static_cast<std::uint8_t>(std::clamp(value + 0.5, 0.0, 255.0));
    }
  }
}

namespace {

MemoryDataset draw_all(std::size_t first, std::size_t count) {
  constexpr std::size_t kSize = std::size_t{kDemoSide} * kDemoSide;
  std::vector<std::uint8_t> pixels(count * kSize);
  std::vector<int> labels(count);
  for (std::size_t i = 0; i < count; ++i) {
    draw_demo(first + i, std::span{pixels}.subspan(i * kSize, kSize));
    labels[i] = static_cast<int>((first + i) % kFigures.size());
  }
  return {static_cast<int>(kFigures.size()),
          1,
          kDemoSide,
          kDemoSide,
          std::move(pixels),
          std::move(labels)};
}

constexpr int kRandomTrain = 1024;
constexpr int kRandomValidation = 256;
constexpr int kRandomClasses = 10;
constexpr int kRandomChannels = 3;
constexpr int kLeastSide = 8;
constexpr int kMostSide = 512;

MemoryDataset random_images(int count, int side, std::uint64_t seed) {
  const std::size_t size = static_cast<std::size_t>(kRandomChannels) * side * side;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count) * size);
  base::Random random{base::mixed({seed})};
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random.next());
  std::vector<int> labels;
  for (int i = 0; i < count; ++i) labels.push_back(i % kRandomClasses);
  return {kRandomClasses, kRandomChannels, side, side, std::move(pixels), std::move(labels)};
}

}  // namespace

MemoryDataset demo_train() { return draw_all(0, kDemoTrain); }
MemoryDataset demo_validation() { return draw_all(kDemoTrain, kDemoValidation); }

Data open_demo() {
  Data data;
  MemoryDataset train = demo_train();
  data.normalization = train.statistics();
  data.train = std::make_unique<MemoryDataset>(std::move(train));
  data.validation = std::make_unique<MemoryDataset>(demo_validation());
  data.classes = demo_classes();
  data.channels = 1;
  data.height = kDemoSide;
  data.width = kDemoSide;
  data.description =
      base::format("demo, version {}: {} drawn training images, {} validation images, {} classes",
                   kDemoVersion, kDemoTrain, kDemoValidation, data.classes.size());
  return data;
}

Result<Data> open_random(const std::filesystem::path& side) {
  const auto number =
      base::parse_integer(side.string(), kLeastSide, kMostSide, "the side of random images");
  if (!number.ok()) return number.status();
  const int pixels = static_cast<int>(number.value());
  Data data;
  MemoryDataset train = random_images(kRandomTrain, pixels, 1);
  data.normalization = train.statistics();
  data.train = std::make_unique<MemoryDataset>(std::move(train));
  data.validation = std::make_unique<MemoryDataset>(random_images(kRandomValidation, pixels, 2));
  for (int i = 0; i < kRandomClasses; ++i) data.classes.push_back(base::format("class {}", i));
  data.channels = kRandomChannels;
  data.height = pixels;
  data.width = pixels;
  data.description =
      base::format("{} random training images of {}x{}, {} validation images, {} classes",
                   kRandomTrain, pixels, pixels, kRandomValidation, kRandomClasses);
  return data;
}

}  // namespace sluice::data
