#include "recipe/models.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/format.h"
#include "base/text.h"

namespace sluice::recipe {
namespace {

// Lists layers and tracks the size of the image through them.
class TableWriter {
 public:
  explicit TableWriter(const ModelInput& input) : channels_{input.channels}, image_{input.image} {}

  struct Window {
    int kernel = 3;
    int stride = 1;
    int padding = 1;
    bool bias = false;
  };

  void convolution(std::string name, int out, Window window) {
    const std::int64_t weights = std::int64_t{out} * channels_ * window.kernel * window.kernel;
    slide(window.kernel, window.stride, window.padding);
    channels_ = out;
    layers_.push_back({.name = std::move(name),
                       .weights = weights,
                       .biases = window.bias ? out : 0,
                       .forward_flops = 2.0 * static_cast<double>(weights) * image_ * image_});
  }

  void batch_norm(std::string name) {
    layers_.push_back({.name = std::move(name),
                       .weights = channels_,
                       .biases = channels_,
                       .one_dimensional = true});
  }

  void pool(int kernel, int stride, int padding = 0) { slide(kernel, stride, padding); }
  void pool_to(int image) {
    if (image_ > 0) image_ = image;
  }

  void linear(std::string name, int out) {
    const std::int64_t weights = std::int64_t{out} * channels_ * image_ * image_;
    channels_ = out;
    image_ = 1;
    layers_.push_back({.name = std::move(name),
                       .weights = weights,
                       .biases = out,
                       .forward_flops = 2.0 * static_cast<double>(weights)});
  }

  int channels() const { return channels_; }
  int image() const { return image_; }
  bool too_small() const { return too_small_; }
  std::vector<ModelLayer> layers() && { return std::move(layers_); }

  // The shortcut of a block: a projection of the block's input.
  void projection(const std::string& block, int channels, int image, int out, int stride) {
    const auto [block_channels, block_image] = std::pair{channels_, image_};
    channels_ = channels;
    image_ = image;
    convolution(block + ".downsample.0", out, {.kernel = 1, .stride = stride, .padding = 0});
    batch_norm(block + ".downsample.1");
    channels_ = block_channels;
    image_ = block_image;
  }

 private:
  void slide(int kernel, int stride, int padding) {
    const int room = image_ + 2 * padding - kernel;
    if (room < 0) too_small_ = true;
    image_ = room < 0 ? 1 : room / stride + 1;
  }

  int channels_;
  int image_;
  bool too_small_ = false;
  std::vector<ModelLayer> layers_;
};

using Window = TableWriter::Window;

// LeCun et al. 1998, with rectified units and max pooling.
void lenet(TableWriter& table, int classes) {
  table.convolution("conv1", 6, {.kernel = 5, .padding = 2, .bias = true});
  table.pool(2, 2);
  table.convolution("conv2", 16, {.kernel = 5, .padding = 0, .bias = true});
  table.pool(2, 2);
  table.linear("fc1", 120);
  table.linear("fc2", 84);
  table.linear("fc3", classes);
}

void smallconv(TableWriter& table, int classes) {
  table.convolution("conv1", 16, {.kernel = 5, .stride = 2, .padding = 2});
  table.batch_norm("bn1");
  table.convolution("conv2", 32, {});
  table.batch_norm("bn2");
  table.pool(2, 2);
  table.convolution("conv3", 64, {});
  table.batch_norm("bn3");
  table.pool(2, 2);
  table.linear("fc", classes);
}

// Krizhevsky 2014, "one weird trick": a single tower.
void alexnet(TableWriter& table, int classes, bool batch_norm) {
  struct Step {
    int channels;
    Window window;
    bool pool;
  };
  constexpr std::array kSteps{
      Step{64, {.kernel = 11, .stride = 4, .padding = 2, .bias = true}, true},
      Step{192, {.kernel = 5, .padding = 2, .bias = true}, true},
      Step{384, {.bias = true}, false},
      Step{256, {.bias = true}, false},
      Step{256, {.bias = true}, true},
  };
  int number = 0;
  for (const Step& step : kSteps) {
    ++number;
    table.convolution(base::format("conv{}", number), step.channels, step.window);
    if (batch_norm) table.batch_norm(base::format("bn{}", number));
    if (step.pool) table.pool(3, 2);
  }
  table.pool_to(6);
  table.linear("fc6", 4096);
  table.linear("fc7", 4096);
  table.linear("fc8", classes);
}

// He et al. 2016, section 4.2: 6n + 2 layers for small images, shortcuts without parameters.
void resnet20(TableWriter& table, int classes) {
  table.convolution("conv1", 16, {});
  table.batch_norm("bn1");
  for (int stage = 0; stage < 3; ++stage) {
    for (int block = 0; block < 3; ++block) {
      const std::string name = base::format("layer{}.{}", stage + 1, block);
      const int stride = stage > 0 && block == 0 ? 2 : 1;
      table.convolution(name + ".conv1", 16 << stage, {.stride = stride});
      table.batch_norm(name + ".bn1");
      table.convolution(name + ".conv2", 16 << stage, {});
      table.batch_norm(name + ".bn2");
    }
  }
  table.pool_to(1);
  table.linear("fc", classes);
}

// He et al. 2016 for large images; in a bottleneck the 3x3 has the stride ("v1.5").
void resnet(TableWriter& table, int classes, std::array<int, 4> blocks, bool bottleneck) {
  table.convolution("conv1", 64, {.kernel = 7, .stride = 2, .padding = 3});
  table.batch_norm("bn1");
  table.pool(3, 2, 1);
  for (int stage = 0; stage < 4; ++stage) {
    const int width = 64 << stage;
    const int out = bottleneck ? 4 * width : width;
    for (int block = 0; block < blocks.at(static_cast<std::size_t>(stage)); ++block) {
      const std::string name = base::format("layer{}.{}", stage + 1, block);
      const int stride = stage > 0 && block == 0 ? 2 : 1;
      const int channels = table.channels();
      const int image = table.image();
      if (bottleneck) {
        table.convolution(name + ".conv1", width, {.kernel = 1, .padding = 0});
        table.batch_norm(name + ".bn1");
        table.convolution(name + ".conv2", width, {.stride = stride});
        table.batch_norm(name + ".bn2");
        table.convolution(name + ".conv3", out, {.kernel = 1, .padding = 0});
        table.batch_norm(name + ".bn3");
      } else {
        table.convolution(name + ".conv1", width, {.stride = stride});
        table.batch_norm(name + ".bn1");
        table.convolution(name + ".conv2", width, {});
        table.batch_norm(name + ".bn2");
      }
      if (stride != 1 || channels != out) table.projection(name, channels, image, out, stride);
    }
  }
  table.pool_to(1);
  table.linear("fc", classes);
}

constexpr int kMostImage = 8192;
constexpr ModelInput kDigits{.classes = 10, .channels = 1, .image = 28};
constexpr ModelInput kSmallImages{.classes = 10, .channels = 3, .image = 32};
constexpr ModelInput kLargeImages{.classes = 1000, .channels = 3, .image = 224};

struct Known {
  std::string_view name;
  ModelInput usual;
  void (*write)(TableWriter& table, int classes);
};

constexpr std::array kModels{
    Known{"lenet", kDigits, lenet},
    Known{"smallconv", kSmallImages, smallconv},
    Known{"resnet20", kSmallImages, resnet20},
    Known{"resnet18", kLargeImages,
          [](TableWriter& table, int classes) {
            resnet(table, classes, {2, 2, 2, 2}, false);
          }},
    Known{"resnet34", kLargeImages,
          [](TableWriter& table, int classes) {
            resnet(table, classes, {3, 4, 6, 3}, false);
          }},
    Known{"resnet50", kLargeImages,
          [](TableWriter& table, int classes) {
            resnet(table, classes, {3, 4, 6, 3}, true);
          }},
    Known{"alexnet", kLargeImages,
          [](TableWriter& table, int classes) { alexnet(table, classes, false); }},
    Known{"alexnet_bn", kLargeImages,
          [](TableWriter& table, int classes) { alexnet(table, classes, true); }},
};

const Known* find_model(std::string_view name) {
  const auto* const found = std::find_if(kModels.begin(), kModels.end(),
                                         [&](const Known& known) { return known.name == name; });
  return found == kModels.end() ? nullptr : found;
}

}  // namespace

std::int64_t ModelTable::gradient_elements() const {
  std::int64_t sum = 0;
  for (const ModelLayer& layer : layers) sum += layer.gradient_elements();
  return sum;
}

int ModelTable::gradient_tensors() const {
  int sum = 0;
  for (const ModelLayer& layer : layers) sum += layer.biases > 0 ? 2 : 1;
  return sum;
}

double ModelTable::forward_flops() const {
  double sum = 0;
  for (const ModelLayer& layer : layers) sum += layer.forward_flops;
  return sum;
}

Result<ModelInput> model_input(std::string_view name, ModelInput input) {
  if (Status known = cluster::check_model_name(name); !known.ok()) return known;
  const Known* const model = find_model(name);
  if (input.classes < 0 || input.channels < 0 || input.image < 0 || input.image > kMostImage) {
    return Status{
        Code::InvalidArgument,
        base::format("{} cannot have {} classes, {} channels and images of {}x{}: use values of at "
                     "least 0, and images of at most {}x{}",
                     name, input.classes, input.channels, input.image, input.image, kMostImage,
                     kMostImage)};
  }
  if (input.classes == 0) input.classes = model->usual.classes;
  if (input.channels == 0) input.channels = model->usual.channels;
  if (input.image == 0) input.image = model->usual.image;
  return input;
}

Result<ModelTable> model_table(std::string_view name, ModelInput input) {
  const Result<ModelInput> filled = model_input(name, input);
  if (!filled.ok()) return filled.status();
  input = filled.value();
  TableWriter table{input};
  find_model(name)->write(table, input.classes);
  if (table.too_small()) {
    return Status{Code::InvalidArgument, base::format("images of {}x{} are too small for {}",
                                                      input.image, input.image, name)};
  }
  return ModelTable{.name = std::string{name}, .input = input, .layers = std::move(table).layers()};
}

}  // namespace sluice::recipe
