// data_pipeline.cc - how many images a second one core brings from a file to the network: read,
// decoded, cropped at random, resized to 224x224, mirrored, normalised.
//
//   data_pipeline [--images 128] [--slices 21] [--output FILE]
//
// Generated JPEG files of 500x375 pixels, quality 90, as images:, as pack: of shorter side 256, and
// as such a pack of pixels, beside bare libjpeg-turbo plus a plain resize, which has the files in
// memory. All take turns in slices of the same images; times are those of the processor, so that a
// busy machine does not count; the medians are compared. The middles of the images must look the
// same all four ways. Exit status 1 where a bar is missed.

#include <CLI/CLI.hpp>
#include <cmath>
#include <ctime>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "bench/allreduce/median.h"
#include "bench/allreduce/temporary_folder.h"
#include "bench/program.h"
#include "bench/train/bare_pipeline.h"
#include "bench/train/photographs.h"
#include "data/data.h"
#include "data/formats/file_bytes.h"
#include "data/formats/pack_images.h"
#include "data/loader/loader.h"

namespace sluice::bench {
namespace {

constexpr int kSide = 224;
constexpr std::size_t kBatch = 32;

struct Options {
  std::size_t images = 128;
  int slices = 21;
  std::string output;
};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// All images of a set in turn, epoch after epoch, without threads.
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
  std::vector<double> rates;  // images a second of the processor
};

[[noreturn]] void refuse(const std::string& why) { throw Error{Status{Code::InvalidInput, why}}; }

// The mean difference of two sets' middles, in pixels' units.
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
    if (batch.count != kBatch) refuse(contender.name + " left images out");
    for (std::size_t j = 0; j < kBatch; ++j) {
      if (batch.labels[j] != contender.data.train->label(contender.held[j].sample) ||
          !std::isfinite(batch.images[j * batch.image_size() + 77])) {
        refuse(contender.name + " gave a wrong batch");
      }
    }
  }
  contender.rates.push_back(static_cast<double>(batches * kBatch) / (processor_seconds() - begin));
}

int run(const Options& options) {
  const TemporaryFolder folder;
  const std::string place = folder.make("photographs");
  write_photographs(place, options.images);
  std::vector<Contender> contenders(3);
  contenders[0].name = "images";
  contenders[0].data = data::open_data("images:" + place).value();
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
    // Resized twice, and compressed twice, they differ by some of the grain; another image by 40.
    const double away = difference(contenders[0].data, contender.data);
    if (away > 6) refuse(base::format("{} shows other images, {:.1f} away", contender.name, away));
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
    if (sum == 0) refuse("bare libjpeg-turbo gave nothing");
    for (Contender& contender : contenders) time_slice(contender, batches);
  }

  struct Bar {
    double against;
    const char* beside;
    double least;
  };
  const double plain = median(bare_rates);
  const double images = median(contenders[0].rates);
  const Bar bars[] = {
      {plain, "bare libjpeg-turbo", 0.85}, {images, "images", 1.4}, {images, "images", 4}};
  base::print("{:<26} {:>10}\n{:<26} {:>10.0f}\n", "a core, 500x375 to 224x224", "images/s",
              "bare libjpeg-turbo", plain);
  nlohmann::ordered_json rows{{{"name", "bare"}, {"images_per_s", plain}}};
  bool met = true;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const double rate = median(contenders[i].rates);
    const double ratio = rate / bars[i].against;
    met = met && ratio >= bars[i].least;
    base::print("{:<26} {:>10.0f}   {:.2f} of {}, at least {} wanted\n", contenders[i].name, rate,
                ratio, bars[i].beside, bars[i].least);
    rows.push_back({{"name", contenders[i].name},
                    {"images_per_s", rate},
                    {"ratio", ratio},
                    {"beside", bars[i].beside},
                    {"bar", bars[i].least}});
  }
  if (!options.output.empty()) std::ofstream{options.output} << rows.dump(2) << "\n";
  return met ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"Images from files to the network, beside bare libjpeg-turbo", "data_pipeline"};
  sluice::bench::Options options;
  app.add_option("--images", options.images, "How many different ones")
      ->check(CLI::Range(32, 100000));
  app.add_option("--slices", options.slices, "Turns of each")->check(CLI::Range(1, 10000));
  app.add_option("--output", options.output, "A JSON file to write");
  return sluice::bench::run_program(app, argc, argv, [&] { return sluice::bench::run(options); });
}
