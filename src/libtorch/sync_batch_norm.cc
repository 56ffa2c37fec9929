// sync_batch_norm.cc - forward gathers each rank's count, mean and sum of squared deviations, and
// combines them in rank order (Chan, Golub and LeVeque, 1983), so all ranks get the same bits.
// Backward needs two sums over the batch, and adds them up over all ranks.
//
// All passes over a batch use libtorch's own kernels in inference mode, with our statistics as
// given values: they normalise a batch, or scale a gradient.
#include "sluice/torch/sync_batch_norm.h"

#include <array>
#include <chrono>

#include "base/format.h"
#include "sluice/status.h"

namespace sluice {
namespace {

// The statistics of a batch over all ranks. A layer shares them with its autograd graphs.
struct BatchStatistics {
  BatchStatistics(const Communicator& among, std::int64_t features)
      : communicator{among},
        gathered(static_cast<std::size_t>(among.size() * row_size(features))) {}

  static std::int64_t row_size(std::int64_t features) { return 1 + 2 * features; }

  Communicator communicator;
  std::vector<double> gathered;  // by rank: count, means, sums of squared deviations
  double waited_s = 0;

  void wait(Work work) {
    const auto begin = std::chrono::steady_clock::now();
    work.wait();
    waited_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
};

using torch::Tensor;

// Wraps the statistics so that an autograd graph can store them.
struct StatisticsHolder : torch::CustomClassHolder {
  explicit StatisticsHolder(std::shared_ptr<BatchStatistics> held) : statistics{std::move(held)} {}
  std::shared_ptr<BatchStatistics> statistics;
};

struct Moments {
  std::int64_t count = 0;
  Tensor mean;      // f64, by feature
  Tensor variance;  // f64, biased
};

// The type in which a batch is normalised: f64 for f64 batches, f32 for all others.
torch::ScalarType working_type(const Tensor& input) {
  return input.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
}

// Reshapes `values` so that it broadcasts over `like`: 1 x features x 1 x ...
Tensor along_features(const Tensor& values, const Tensor& like) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
  shape[1] = values.numel();
  return values.view(shape);
}

// (input - mean) / sqrt(variance + epsilon) * weight + bias, by feature. All have one type.
Tensor normalised(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                  const Tensor& variance, double epsilon) {
  return std::get<0>(
      torch::native_batch_norm(input, weight, bias, mean, variance, false, 0, epsilon));
}

[[noreturn]] void refuse_one_value() {
  throw Error{
      Status{Code::InvalidArgument,
             "batch normalisation needs more than one value per feature in training, but all "
             "ranks together have one: use larger batches"}};
}

Moments moments_of_all(const Tensor& input, BatchStatistics& statistics) {
  const std::int64_t features = input.size(1);
  const std::int64_t row_size = BatchStatistics::row_size(features);
  Communicator& communicator = statistics.communicator;
  const Tensor gathered =
      torch::from_blob(statistics.gathered.data(), {communicator.size(), row_size}, torch::kDouble);
  const Tensor own = gathered[communicator.rank()].zero_();
  const std::int64_t count = input.numel() / features;
  if (count > 0) {
    const auto [mean, variance] = torch::batch_norm_update_stats(input, {}, {}, 0);
    own[0] = count;
    own.narrow(0, 1, features).copy_(mean);
    own.narrow(0, 1 + features, features).copy_(variance).mul_(count);
  }
  statistics.wait(communicator.all_gather(statistics.gathered));

  Moments all{0, torch::zeros({features}, torch::kDouble),
              torch::zeros({features}, torch::kDouble)};
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const Tensor row = gathered[rank];
    const auto row_count =
        static_cast<std::int64_t>(statistics.gathered[static_cast<std::size_t>(rank * row_size)]);
    if (row_count == 0) continue;
    const std::int64_t total = all.count + row_count;
    const double share = static_cast<double>(row_count) / static_cast<double>(total);
    const Tensor delta = row.narrow(0, 1, features) - all.mean;
    all.variance.add_(row.narrow(0, 1 + features, features))
        .addcmul_(delta, delta, static_cast<double>(all.count) * share);
    all.mean.add_(delta, share);
    all.count = total;
  }
  if (all.count > 0) all.variance.div_(all.count);
  return all;
}

struct SyncBatchNormFunction : torch::autograd::Function<SyncBatchNormFunction> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input,
                        const Tensor& weight, const Tensor& bias, const Moments& moments,
                        double epsilon, const std::shared_ptr<BatchStatistics>& statistics) {
    const torch::ScalarType type = working_type(input);
    const Tensor batch = input.to(type);
    const Tensor mean = moments.mean.to(type);
    const Tensor variance = moments.variance.to(type);
    context->save_for_backward({input, weight, mean, variance});
    context->saved_data["count"] = moments.count;
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["statistics"] =
        c10::IValue::make_capsule(c10::make_intrusive<StatisticsHolder>(statistics));
    if (input.numel() == 0) return torch::empty_like(input);
    return normalised(batch, weight.to(type), bias.to(type), mean, variance, epsilon)
        .to(input.scalar_type());
  }

  // With s = 1 / sqrt(variance + epsilon) and x^ = (x - mean) s, where sums and `count` are over
  // the batches of all ranks:
  //   dx = weight s (dy - sum(dy) / count - x^ sum(dy x^) / count)
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list outputs) {
    if (torch::GradMode::is_enabled())
      throw Error{
          Status{Code::InvalidArgument,
                 "synchronised batch normalisation has no second derivative: call backward() "
                 "without create_graph"}};
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const Tensor& input = saved[0];
    const Tensor& weight = saved[1];
    const Tensor& mean = saved[2];
    const Tensor& variance = saved[3];
    const double epsilon = context->saved_data["epsilon"].toDouble();
    const auto count = static_cast<double>(context->saved_data["count"].toInt());
    const auto capsule = context->saved_data["statistics"].toCapsule();
    BatchStatistics& statistics = *static_cast<StatisticsHolder&>(*capsule).statistics;

    const torch::ScalarType type = mean.scalar_type();
    const std::int64_t features = mean.numel();
    const Tensor batch = input.to(type);
    const Tensor grad_output = outputs[0].to(type, false, false, batch.suggest_memory_format());
    Tensor grad_bias = torch::zeros({features}, type);
    Tensor grad_weight = torch::zeros({features}, type);
    if (batch.numel() > 0) {
      std::tie(std::ignore, grad_weight, grad_bias) =
          torch::native_batch_norm_backward(grad_output, batch, torch::ones({features}, type), mean,
                                            variance, {}, {}, false, epsilon, {false, true, true});
    }
    Tensor sums = torch::stack({grad_bias, grad_weight}).to(torch::kDouble);
    statistics.wait(statistics.communicator.all_reduce(
        {sums.data_ptr(), static_cast<std::size_t>(sums.numel()), DataType::F64}));

    Tensor grad_input;
    if (context->needs_input_grad(0)) {
      if (batch.numel() == 0) {
        grad_input = torch::zeros_like(input);
      } else {
        const Tensor scale = (variance.to(torch::kDouble) + epsilon).rsqrt();
        const Tensor factor = weight.to(torch::kDouble) * scale;
        const Tensor constant = (sums[0] * factor).div_(-count);
        const Tensor factor_of_x = (sums[1] * factor).div_(-count);
        grad_input =
            normalised(batch, factor_of_x.to(type), constant.to(type), mean, variance, epsilon)
                .addcmul_(grad_output, along_features(factor.to(type), grad_output))
                .to(input.scalar_type());
      }
    }
    return {grad_input,
            grad_weight.to(weight.scalar_type()),
            grad_bias.to(weight.scalar_type()),
            {},
            {},
            {}};
  }
};

}  // namespace

struct SyncBatchNormImpl::Impl : BatchStatistics {
  using BatchStatistics::BatchStatistics;
};

SyncBatchNormImpl::SyncBatchNormImpl(const torch::nn::BatchNormOptions& norm,
                                     const Communicator& group)
    : NormImplBase{norm}, impl_{std::make_shared<Impl>(group, norm.num_features())} {}

void SyncBatchNormImpl::_check_input_dim(const Tensor& input) {
  if (input.dim() < 2 || input.size(1) != options.num_features())
    throw Error{
        Status{Code::InvalidArgument,
               base::format("batch normalisation of {} features got an input of shape {}; pass "
                            "batch x features x any shape",
                            options.num_features(), c10::str(input.sizes()))}};
}

// Returns the weight of this batch in the running statistics.
double SyncBatchNormImpl::begin_batch() {
  if (!options.track_running_stats()) return 0;
  num_batches_tracked += 1;
  if (options.momentum().has_value()) return *options.momentum();
  return 1.0 / num_batches_tracked.item<double>();
}

Tensor SyncBatchNormImpl::forward(const Tensor& input) {
  _check_input_dim(input);
  const bool plain = !is_training() || impl_->communicator.size() == 1;
  if (plain) {
    if (is_training() && input.numel() == input.size(1)) refuse_one_value();
    const double momentum = is_training() ? begin_batch() : 0;
    return torch::batch_norm(input, weight, bias, running_mean, running_var,
                             is_training() || !options.track_running_stats(), momentum,
                             options.eps(), at::globalContext().userEnabledCuDNN());
  }
  Moments moments;
  {
    const torch::NoGradGuard no_gradient;
    moments = moments_of_all(input.to(working_type(input)), *impl_);
    if (moments.count == 1) refuse_one_value();
    if (moments.count > 0 && options.track_running_stats()) {
      const double momentum = begin_batch();
      const auto count = static_cast<double>(moments.count);
      running_mean.mul_(1 - momentum).add_(moments.mean.to(running_mean.scalar_type()), momentum);
      running_var.mul_(1 - momentum)
          .add_(moments.variance.to(running_var.scalar_type()), momentum * count / (count - 1));
    }
  }
  const auto type = working_type(input);
  return SyncBatchNormFunction::apply(
      input, weight.defined() ? weight : torch::ones({input.size(1)}, type),
      bias.defined() ? bias : torch::zeros({input.size(1)}, type), moments, options.eps(), impl_);
}

double SyncBatchNormImpl::waited_s() const { return impl_->waited_s; }

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << "sluice::SyncBatchNorm(" << options.num_features() << ", eps=" << options.eps()
         << ", affine=" << options.affine()
         << ", track_running_stats=" << options.track_running_stats()
         << ", ranks=" << impl_->communicator.size() << ")";
}

void average_running_statistics(torch::nn::Module& module, Communicator& communicator) {
  const torch::NoGradGuard no_gradient;
  std::vector<Tensor> statistics;
  std::vector<Tensor> flat;
  for (const auto& buffer : module.named_buffers()) {
    const std::string_view name = buffer.key();
    if (!name.ends_with("running_mean") && !name.ends_with("running_var")) continue;
    statistics.push_back(buffer.value());
    flat.push_back(buffer.value().reshape(-1).to(torch::kDouble));
  }
  if (statistics.empty()) return;
  const Tensor all = torch::cat(flat);
  communicator
      .all_reduce({all.data_ptr(), static_cast<std::size_t>(all.numel()), DataType::F64},
                  {.op = ReduceOp::Mean})
      .wait();
  std::int64_t first = 0;
  for (Tensor& tensor : statistics) {
    tensor.copy_(all.narrow(0, first, tensor.numel()).view_as(tensor));
    first += tensor.numel();
  }
}

}  // namespace sluice
