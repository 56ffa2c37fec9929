// data_pipeline.cc - images per second that one core reads, decodes, crops at random, resizes to
// 224x224, mirrors and normalises.
//
//   data_pipeline [--images 128] [--slices 21] [--output FILE]
//
// Compares generated JPEG files (500x375, quality 90) as images:, as pack: with a shorter side of
// 256, and as such a pack of raw pixels with bare libjpeg-turbo and a plain resize of files in
// memory. All take turns in slices of the same images. Processor time counts, so that a busy
// machine does not matter; medians are compared. The centre crops of the images must look the same
// in all contenders. Exit status 1: a limit is missed.

#include <turbojpeg.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/format.h"
#include "base/random.h"
#include "bench/allreduce/temporary_folder.h"
#include "bench/program.h"
#include "data/data.h"
#include "data/formats/file_bytes.h"
#include "data/formats/pack.h"
#include "data/image/image_decoder.h"
#include "data/loader/loader.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

constexpr int kSide = 224;
constexpr std::size_t kBatch = 32;

struct Options {
  std::size_t images = 128;
  int slices = 21;
  std::string output;
};

constexpr int kHeight = 375;
constexpr int kWidth = 500;
constexpr int kQuality = 90;

// Draws waves, weaker with shorter length, and noise, to get about as much detail as a photograph.
void draw(std::uint64_t number, data::Image& pixels) {
  pixels.resize(data::Storage::Interleaved, 3, kHeight, kWidth);
  base::Random random{base::mixed({number})};
  const auto uniform = [&random](double least, double most) {
    return least + (most - least) * static_cast<double>(random.next() >> 11U) * 0x1p-53;
  };
  struct Wave {
    double x, y, phase, strength[3];
  };
  std::vector<Wave> waves;
  for (double length = 400; length > 5; length /= 1.7) {
    const double turn = uniform(0, 6.28);
    waves.push_back(
        {std::cos(turn) * 6.28 / length, std::sin(turn) * 6.28 / length, uniform(0, 6.28), {}});
    for (double& strength : waves.back().strength)
      strength = uniform(0.3, 1) * std::sqrt(length) * 2;
  }
  std::size_t next = 0;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      double values[3] = {128, 128, 128};
      for (const Wave& wave : waves) {
        const double height = std::sin(wave.x * x + wave.y * y + wave.phase);
        for (int c = 0; c < 3; ++c) values[c] += wave.strength[c] * height;
      }
      const std::uint64_t grain = random.next();
      for (unsigned c = 0; c < 3; ++c) {
        const double noise = static_cast<double>((grain >> (8 * c)) & 15U) - 7.5;
        pixels.pixels[next++] =
            static_cast<std::uint8_t>(std::clamp(values[c] + noise, 0.0, 255.0));
      }
    }
  }
}

// Writes DIR/train and DIR/val with two classes each: `count` images in train and four in val,
// 500x375 pixels, quality 90. Throws Error.
void write_photographs(const std::filesystem::path& folder, std::size_t count) {
  data::JpegEncoder encoder;
  data::Image pixels;
  std::vector<std::uint8_t> file;
  const auto write = [&](const char* part, std::size_t number) {
    draw(number, pixels);
    const Status status = encoder.encode(pixels.view(), kQuality, file);
    if (!status.ok()) throw Error{status};
    const std::filesystem::path target = folder / part / (number % 2 == 0 ? "even" : "odd");
    std::filesystem::create_directories(target);
    std::ofstream{target / base::format("{:05}.jpg", number), std::ios::binary}.write(
        reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  };
  for (std::size_t i = 0; i < count; ++i) write("train", i);
  for (std::size_t i = 0; i < 4; ++i) write("val", count + i);
}

// Bilinear, in fixed point with 8 fraction bits.
void resize(const std::uint8_t* from, int height, int width, int side, std::uint8_t* out) {
  for (int y = 0; y < side; ++y) {
    const int row = y * (height - 1) * 256 / side;
    const std::uint8_t* const upper = from + static_cast<std::ptrdiff_t>(row >> 8) * width * 3;
    const std::uint8_t* const lower = upper + std::ptrdiff_t{width} * 3;
    const int down = row & 255;
    for (int x = 0; x < side; ++x) {
      const int column = x * (width - 1) * 256 / side;
      const int across = column & 255;
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(column >> 8) * 3;
      for (std::ptrdiff_t c = at; c < at + 3; ++c) {
        const int above = upper[c] * (256 - across) + upper[c + 3] * across;
        const int below = lower[c] * (256 - across) + lower[c + 3] * across;
        *out++ = static_cast<std::uint8_t>((above * (256 - down) + below * down) >> 16);
      }
    }
  }
}

// The least work for a JPEG: libjpeg-turbo decodes the whole image, then a bilinear resize. It
// reads no file and does not crop, mirror or normalise.
class BarePipeline {
 public:
  BarePipeline() : handle_{tjInitDecompress()} {}
  ~BarePipeline() { tjDestroy(handle_); }
  BarePipeline(const BarePipeline&) = delete;
  BarePipeline& operator=(const BarePipeline&) = delete;

  // Returns side x side pixels of three channels, valid until the next call. Throws Error.
  std::span<const std::uint8_t> run(std::span<const std::uint8_t> file, int side) {
    int width = 0;
    int height = 0;
    int subsampling = 0;
    int colors = 0;
    const auto bytes = static_cast<unsigned long>(file.size());
    bool ok = tjDecompressHeader3(handle_, file.data(), bytes, &width, &height, &subsampling,
                                  &colors) == 0;
    decoded_.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
    ok = ok && tjDecompress2(handle_, file.data(), bytes, decoded_.data(), width, 0, height,
                             TJPF_RGB, TJFLAG_ACCURATEDCT) == 0;
    if (!ok) throw Error{Status{Code::InvalidInput, tjGetErrorStr2(handle_)}};
    resized_.resize(static_cast<std::size_t>(side) * static_cast<std::size_t>(side) * 3);
    resize(decoded_.data(), height, width, side, resized_.data());
    return resized_;
  }

 private:
  void* handle_;
  std::vector<std::uint8_t> decoded_;
  std::vector<std::uint8_t> resized_;
};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A loader without threads that goes through all images in order, epoch after epoch.
std::unique_ptr<data::Loader> loader_of(const data::Data& data, data::ViewKind kind,
                                        std::vector<data::SampleRef>& held) {
  const std::size_t size = data.train->size();
  return std::make_unique<data::Loader>(
      *data.train,
      data::LoaderOptions{.threads = 0,
                          .view = {.kind = kind},
                          .normalization = data.normalization,
                          .image = kSide},
      [size, &held](std::int64_t batch) {
        held.clear();
        for (std::size_t i = 0; i < kBatch; ++i) {
          const std::size_t position = static_cast<std::size_t>(batch) * kBatch + i;
          held.push_back({position / size, position % size});
        }
        return std::span<const data::SampleRef>{held};
      },
      0, std::int64_t{1} << 40U);
}

struct Contender {
  std::string name;
  data::Data data;
  std::vector<data::SampleRef> held;
  std::unique_ptr<data::Loader> loader;
  std::vector<double> rates;  // images per second of processor time
};

[[noreturn]] void refuse(const std::string& why) { throw Error{Status{Code::InvalidInput, why}}; }

// The mean difference between the centre crops of two data sets, in units of a pixel value.
double difference(const data::Data& one, const data::Data& other) {
  std::vector<data::SampleRef> held;
  const auto first = loader_of(one, data::ViewKind::CentreCrop, held);
  const data::Batch left = *first->next().value();
  const auto second = loader_of(other, data::ViewKind::CentreCrop, held);
  const data::Batch& right = *second->next().value();
  double sum = 0;
  const std::size_t plane = std::size_t{kSide} * kSide;
  const std::size_t count = left.count * left.image_size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t c = i / plane % 3;
    const double a = left.images[i] * one.normalization.deviation[c] + one.normalization.mean[c];
    const double b =
        right.images[i] * other.normalization.deviation[c] + other.normalization.mean[c];
    sum += std::abs(a - b);
  }
  return sum / static_cast<double>(count);
}

void time_slice(Contender& contender, std::size_t batches) {
  const double begin = processor_seconds();
  for (std::size_t i = 0; i < batches; ++i) {
    const data::Batch& batch = *contender.loader->next().value();
    if (batch.count != kBatch) refuse(contender.name + " skipped images");
    for (std::size_t j = 0; j < kBatch; ++j) {
      if (batch.labels[j] != contender.data.train->label(contender.held[j].sample) ||
          !std::isfinite(batch.images[j * batch.image_size() + 77])) {
        refuse(contender.name + " returned a wrong batch");
      }
    }
  }
  contender.rates.push_back(static_cast<double>(batches * kBatch) / (processor_seconds() - begin));
}

int run(const Options& options) {
  const TemporaryFolder folder;
  const std::string source = folder.make("photographs");
  write_photographs(source, options.images);
  std::vector<Contender> contenders(3);
  contenders[0].name = "images";
  contenders[0].data = data::open_data("images:" + source).value();
  const std::filesystem::path packs = folder.make("packs");
  const auto packed = [&](const char* name, bool raw) {
    const std::string file = (packs / name).string();
    (void)data::pack_images(contenders[0].data, file, {.resize = 256, .raw = raw}).value();
    return data::open_data("pack:" + file).value();
  };
  contenders[1].name = "pack --resize 256";
  contenders[1].data = packed("jpeg", false);
  contenders[2].name = "pack --resize 256 --raw";
  contenders[2].data = packed("raw", true);

  std::vector<std::vector<std::uint8_t>> files(options.images);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Status status = data::read_bytes(contenders[0].data.train->name(i), files[i]);
    if (!status.ok()) throw Error{status};
  }
  for (Contender& contender : contenders) {
    // Resizing and compressing twice loses some noise; a different image would differ by 40.
    const double away = difference(contenders[0].data, contender.data);
    if (away > 6) refuse(base::format("the images of {} differ by {:.1f}", contender.name, away));
    contender.loader = loader_of(contender.data, data::ViewKind::ResizedCrop, contender.held);
  }

  BarePipeline bare;
  std::vector<double> bare_rates;
  const std::size_t batches = std::max<std::size_t>(1, options.images / kBatch);
  for (int slice = 0; slice < options.slices; ++slice) {
    const double begin = processor_seconds();
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < batches * kBatch; ++i)
      sum += bare.run(files[i % files.size()], kSide)[7];
    bare_rates.push_back(static_cast<double>(batches * kBatch) / (processor_seconds() - begin));
    if (sum == 0) refuse("bare libjpeg-turbo returned black images");
    for (Contender& contender : contenders) time_slice(contender, batches);
  }

  struct RateLimit {
    double against;
    const char* beside;
    double least;
  };
  const double plain = median(bare_rates);
  const double images = median(contenders[0].rates);
  const RateLimit limits[] = {
      {plain, "bare libjpeg-turbo", 0.85}, {images, "images", 1.4}, {images, "images", 4}};
  base::print("{:<28} {:>10}\n{:<28} {:>10.0f}\n", "one core, 500x375 to 224x224", "images/s",
              "bare libjpeg-turbo", plain);
  nlohmann::ordered_json rows{{{"name", "bare"}, {"images_per_s", plain}}};
  bool met = true;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const double rate = median(contenders[i].rates);
    const double ratio = rate / limits[i].against;
    met = met && ratio >= limits[i].least;
    base::print("{:<28} {:>10.0f}   {:.2f} times {}, limit {}\n", contenders[i].name, rate, ratio,
                limits[i].beside, limits[i].least);
    rows.push_back({{"name", contenders[i].name},
                    {"images_per_s", rate},
                    {"ratio", ratio},
                    {"beside", limits[i].beside},
                    {"bar", limits[i].least}});
  }
  if (!options.output.empty()) std::ofstream{options.output} << rows.dump(2) << "\n";
  return met ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures the data pipeline against bare libjpeg-turbo", "data_pipeline"};
  sluice::bench::Options options;
  app.add_option("--images", options.images, "Number of different images")
      ->check(CLI::Range(32, 100000));
  app.add_option("--slices", options.slices, "Slices per contender; the median is shown")
      ->check(CLI::Range(1, 10000));
  app.add_option("--output", options.output, "Write the results to this file as JSON");
  return sluice::bench::run_program(app, argc, argv, [&] { return sluice::bench::run(options); });
}
