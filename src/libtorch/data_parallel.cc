// data_parallel.cc - autograd's hooks onto the reducer.
//
// libtorch adds a gradient to .grad in a node of the graph, AccumulateGrad; our hook runs right
// after it. There .grad either is the parameter's slot in the reducer's pool, or, after a
// zero_grad() that made it undefined, a tensor of libtorch's own, which is copied into the slot.
// Either way .grad then is the slot, and the reducer may send it.
//
// Slots are tensors over the pool's memory with the parameter's own strides, so what is sent needs
// no packing. They move when the reducer lays its pool anew, and are two each with double
// buffering.
#include "sluice/torch/data_parallel.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/log.h"
#include "base/text.h"
#include "gradient/reducer.h"
#include "libtorch/trained_parameters.h"
#include "libtorch/weights.h"
#include "sluice/torch/momentum_optimizer.h"

namespace sluice {
namespace {

using torch::Tensor;

// A pointer whose type changed between versions of libtorch.
using Accumulator = decltype(torch::autograd::impl::grad_accumulator(Tensor{}));

// Module::zero_grad() makes .grad another tensor over the same memory.
bool lies_in(const Tensor& gradient, const Tensor& slot) {
  return gradient.defined() && slot.defined() && gradient.layout() == torch::kStrided &&
         gradient.data_ptr() == slot.data_ptr();
}

}  // namespace

class DataParallel::Impl {
 public:
  Impl(torch::nn::Module* module, const libtorch::NamedTensors& parameters,
       const libtorch::NamedTensors& buffers, Communicator communicator, GradientOptions options);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  FinishedStep finish();
  FinishedStep flush();
  std::shared_ptr<const Arrivals> arrivals();
  void set_decay(const Tensor& tensor, double decay);
  void set_timeline(Timeline* timeline);
  gradient::Reducer& reducer() { return reducer_; }
  int& pauses() { return pauses_; }

 private:
  struct Parameter {
    std::string name;
    Tensor tensor;
    torch::ScalarType type;
    Accumulator accumulator = {};  // a tensor holds its own only weakly
    std::uintptr_t hook = 0;
    float decay = 0;
    std::array<Tensor, 2> slots = {};  // as seen so far
    Tensor given = {};                 // the slot that .grad was last made
    // What that of `given` is if only gradients were added since finish() handed it out.
    std::optional<std::int64_t> version = {};
    bool ready = false;          // in this step
    bool paused = false;         // it has a gradient from a pause
    bool was_undefined = false;  // .grad, before this step's backward
    bool followed = false;       // by an optimizer that knows of sparse steps

    // Whether the mean that was handed out is still there, below what was added.
    bool holds_mean() const {
      return version && lies_in(tensor.grad(), given) && given._version() == *version;
    }
  };

  class Hook : public torch::autograd::FunctionPostHook {
   public:
    Hook(Impl& owner, std::size_t number) : owner_{owner}, number_{number} {}
    torch::autograd::variable_list operator()(
        const torch::autograd::variable_list& outputs,
        const torch::autograd::variable_list& inputs) override {
      if (!inputs.empty() && inputs[0].defined()) owner_.take(number_, inputs[0]);
      return outputs;
    }

   private:
    Impl& owner_;
    std::size_t number_;
  };

  // What optimizers that follow hold. It may outlive DataParallel: then everything arrives.
  class Followed final : public Arrivals {
   public:
    explicit Followed(const Impl& owner) : owner_{&owner} {}
    void forget() { owner_ = nullptr; }
    Arrival of(const Tensor& tensor) const override {
      return owner_ == nullptr ? Arrival{} : owner_->arrival(tensor);
    }

   private:
    const Impl* owner_;
  };

  void take(std::size_t i, const Tensor& added);
  static void require_cleared(const Parameter& parameter);
  void send(std::size_t i);
  const Tensor& slot(std::size_t i);
  void note_gradient();
  void note_backward();
  void require_same_parameters() const;
  void require_followed() const;
  Arrival arrival(const Tensor& tensor) const;
  void hand_out(const FinishedStep& finished);
  void hand_out(std::size_t i);

  torch::nn::Module* module_;     // or null, and
  libtorch::NamedTensors given_;  // those that were given instead
  std::vector<Parameter> parameters_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> numbers_;  // of parameters_
  bool sparse_;
  std::shared_ptr<Followed> followed_ = std::make_shared<Followed>(*this);
  gradient::Reducer reducer_;
  std::uint64_t layout_version_;
  int pauses_ = 0;
  Timeline* timeline_ = nullptr;
  struct {
    bool begun = false;
    std::int64_t first_ns = 0;  // gradient, and the last so far
    std::int64_t last_ns = 0;
  } backward_;  // of the step under way
};

DataParallel::Impl::Impl(torch::nn::Module* module, const libtorch::NamedTensors& parameters,
                         const libtorch::NamedTensors& buffers, Communicator communicator,
                         GradientOptions options)
    : module_{module},
      given_{module == nullptr ? parameters : libtorch::NamedTensors{}},
      sparse_{options.sparse.sparsity > 0},
      reducer_{communicator, libtorch::gradient_specs(libtorch::trained_parameters(parameters)),
               std::move(options)},
      layout_version_{reducer_.layout_version()} {
  libtorch::NamedTensors all = parameters;
  all.insert(all.end(), buffers.begin(), buffers.end());
  if (libtorch::equalise(all, communicator) && communicator.rank() == 0)
    base::log_warning("the ranks' weights differed; all go on with those of rank 0");

  for (const auto& [name, tensor] : libtorch::trained_parameters(parameters)) {
    numbers_.emplace(tensor.unsafeGetTensorImpl(), parameters_.size());
    parameters_.push_back({.name = name, .tensor = tensor, .type = tensor.scalar_type()});
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = parameters_[i];
    parameter.accumulator = torch::autograd::impl::grad_accumulator(parameter.tensor);
    parameter.hook = parameter.accumulator->add_post_hook(std::make_unique<Hook>(*this, i));
  }
}

DataParallel::Impl::~Impl() {
  followed_->forget();
  for (Parameter& parameter : parameters_) {
    parameter.accumulator->del_post_hook(parameter.hook);
    Tensor& gradient = parameter.tensor.mutable_grad();
    if (lies_in(gradient, parameter.given)) gradient.reset();
  }
}

// The slot of the step under way.
const Tensor& DataParallel::Impl::slot(std::size_t i) {
  Parameter& parameter = parameters_[i];
  std::byte* const memory = reducer_.slot(i);
  for (Tensor& slot : parameter.slots) {
    if (!slot.defined()) slot = libtorch::tensor_over(memory, parameter.tensor);
    if (slot.data_ptr() == memory) return slot;
  }
  base::refuse(base::format("the gradient of '{}' has moved", parameter.name));
}

// `added`: what libtorch has just added to .grad.
void DataParallel::Impl::take(std::size_t i, const Tensor& added) {
  Parameter& parameter = parameters_[i];
  const Tensor& gradient = parameter.tensor.grad();
  // Of one that was frozen after forward() libtorch drops the gradient.
  if (!parameter.tensor.requires_grad() || !gradient.defined()) return;
  if (parameter.ready)
    base::refuse(base::format(
        "parameter '{}' got a second gradient before finish(); call finish() after each "
        "backward(), or hold no_sync() during all but the last",
        parameter.name));
  if (parameter.version) ++*parameter.version;
  // What is cleared through .data() keeps its version; the sum then is what was added.
  if (parameter.holds_mean() &&
      torch::allclose(gradient, added.layout() == torch::kStrided ? added : added.to_dense(), 0, 0,
                      /*equal_nan=*/true))
    parameter.version.reset();
  if (pauses_ > 0) {
    parameter.paused = true;
  } else {
    require_cleared(parameter);
    send(i);
    note_gradient();
  }
}

void DataParallel::Impl::require_cleared(const Parameter& parameter) {
  if (parameter.holds_mean())
    base::refuse(base::format(
        "parameter '{}' got a gradient on top of the mean that finish() handed out; clear it with "
        "zero_grad() before the next backward(), freeze it if no optimizer moves it, or hold "
        "no_sync() to add up",
        parameter.name));
}

void DataParallel::Impl::note_gradient() {
  if (timeline_ == nullptr) return;
  backward_.last_ns = timeline_->now_ns();
  if (!backward_.begun) backward_.first_ns = backward_.last_ns;
  backward_.begun = true;
}

void DataParallel::Impl::note_backward() {
  if (timeline_ != nullptr && backward_.begun)
    timeline_->add(
        {.name = "backward", .begin_ns = backward_.first_ns, .end_ns = backward_.last_ns});
  backward_.begun = false;
}

void DataParallel::Impl::send(std::size_t i) {
  const torch::NoGradGuard no_gradient;
  Parameter& parameter = parameters_[i];
  Tensor& gradient = parameter.tensor.mutable_grad();
  const Tensor& own = slot(i);
  parameter.was_undefined = !lies_in(gradient, own);
  if (parameter.was_undefined) {
    if (gradient.is_sparse()) {
      own.zero_().add_(gradient);
    } else {
      own.copy_(gradient);
    }
  }
  if (!gradient.is_same(own)) gradient = parameter.given = own;
  parameter.version.reset();
  parameter.ready = true;
  if (sparse_ && parameter.decay != 0)
    reducer_.set_decay(i, parameter.tensor.data_ptr<float>(), parameter.decay);
  reducer_.mark_ready(i);
}

void DataParallel::Impl::require_same_parameters() const {
  std::vector<std::string> late;
  const auto check = [&](const std::string& name, const Tensor& tensor) {
    if (libtorch::takes_part(tensor) && !numbers_.contains(tensor.unsafeGetTensorImpl()))
      late.push_back(name);
  };
  for (const auto& [name, tensor] : given_) check(name, tensor);
  if (module_ != nullptr) {
    for (const auto& item : module_->named_parameters()) check(item.key(), item.value());
  }
  if (!late.empty())
    base::refuse(base::format(
        "parameters that were added, replaced or unfrozen after DataParallel was made: "
        "'{}'; make a new one",
        base::join(late, "', '")));
  for (const Parameter& parameter : parameters_) {
    if (parameter.tensor.scalar_type() != parameter.type)
      base::refuse(
          base::format("parameter '{}' was of type {} when DataParallel was made, and is {} now; "
                       "make a new one",
                       parameter.name, c10::toString(parameter.type),
                       c10::toString(parameter.tensor.scalar_type())));
    // What replaces a tensor's storage takes its hook away.
    if (parameter.tensor.requires_grad() &&
        torch::autograd::impl::grad_accumulator(parameter.tensor) != parameter.accumulator)
      base::refuse(base::format(
          "parameter '{}' was loaded or converted after DataParallel was made; make it afterwards",
          parameter.name));
  }
}

void DataParallel::Impl::require_followed() const {
  constexpr const char* kNeed =
      "sparse gradients need an optimizer that moves only what arrives: make it a sluice::Sgd or "
      "sluice::Lars, and call its follow() with this DataParallel";
  if (followed_.use_count() == 1) base::refuse(kNeed);  // that one is ours
  for (const Parameter& parameter : parameters_) {
    if (!parameter.followed && libtorch::has_chunks(parameter.tensor) &&
        parameter.tensor.requires_grad())
      base::refuse(base::format("{}; parameter '{}' has none that follows", kNeed, parameter.name));
  }
}

FinishedStep DataParallel::Impl::finish() {
  if (pauses_ > 0) base::refuse("finish() was called while no_sync() holds; let go of it first");
  require_same_parameters();
  if (sparse_) require_followed();
  for (const Parameter& parameter : parameters_) {
    if (parameter.paused && !parameter.ready) require_cleared(parameter);
  }
  note_backward();
  try {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const Parameter& parameter = parameters_[i];
      if (parameter.paused && !parameter.ready && parameter.tensor.grad().defined()) send(i);
    }
    FinishedStep finished = reducer_.finish();
    hand_out(finished);
    return finished;
  } catch (...) {
    // Who goes on after a failure is to hear of that, not of gradients that came twice.
    for (Parameter& parameter : parameters_) parameter.ready = parameter.paused = false;
    throw;
  }
}

FinishedStep DataParallel::Impl::flush() {
  for (const Parameter& parameter : parameters_) {
    if (parameter.ready || parameter.paused)
      base::refuse("flush() was called between backward() and finish(); call finish() first");
  }
  FinishedStep finished = reducer_.flush();
  if (!finished.empty) hand_out(finished);
  return finished;
}

void DataParallel::Impl::hand_out(const FinishedStep& finished) {
  if (reducer_.layout_version() != layout_version_) {
    layout_version_ = reducer_.layout_version();
    for (Parameter& parameter : parameters_) parameter.slots = {};
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = parameters_[i];
    parameter.version.reset();
    // One that was frozen since must not move by what arrives late.
    if (finished.empty || finished.skipped || !parameter.tensor.requires_grad()) {
      parameter.tensor.mutable_grad().reset();
    } else {
      hand_out(i);
    }
    parameter.ready = parameter.paused = false;
  }
}

void DataParallel::Impl::hand_out(std::size_t i) {
  Parameter& parameter = parameters_[i];
  Tensor& gradient = parameter.tensor.mutable_grad();
  if (reducer_.used(i)) {
    gradient = parameter.given = slot(i);
    parameter.version = gradient._version();
  } else if (parameter.ready && parameter.was_undefined) {
    gradient.reset();
  } else if (lies_in(gradient, parameter.given)) {
    // With double buffering it may be on its way by now; and nobody had one the step before.
    gradient = parameter.given = slot(i);
    gradient.zero_();
  }
}

std::shared_ptr<const Arrivals> DataParallel::Impl::arrivals() {
  if (followed_.use_count() == 1) {  // who followed before has gone
    for (Parameter& parameter : parameters_) parameter.followed = false;
  }
  return followed_;
}

// Parts of one step each that are all there are as good as a dense gradient.
Arrival DataParallel::Impl::arrival(const Tensor& tensor) const {
  const auto found = numbers_.find(tensor.unsafeGetTensorImpl());
  if (!sparse_ || found == numbers_.end() || !libtorch::may_be_sparse(tensor)) return {};
  const std::size_t i = found->second;
  const std::span<const GradientPart> parts = reducer_.arrived(i);
  std::size_t fresh = 0;
  for (const GradientPart& part : parts) fresh += part.steps == 1 ? part.count : 0;
  return {.whole = fresh == static_cast<std::size_t>(tensor.numel()),
          .parts = parts,
          .decayed = reducer_.holds_decay(i)};
}

void DataParallel::Impl::set_decay(const Tensor& tensor, double decay) {
  const auto found = numbers_.find(tensor.unsafeGetTensorImpl());
  if (found == numbers_.end() || !libtorch::has_chunks(tensor)) return;
  Parameter& parameter = parameters_[found->second];
  parameter.followed = true;
  parameter.decay = static_cast<float>(decay);
  // A step that was restored holds it before this run has sent any.
  if (sparse_) reducer_.set_decay(found->second, tensor.data_ptr<float>(), parameter.decay);
}

void DataParallel::Impl::set_timeline(Timeline* timeline) {
  timeline_ = timeline;
  backward_.begun = false;
  reducer_.set_timeline(timeline);
}

DataParallel::DataParallel(torch::nn::Module& module, const Communicator& communicator,
                           GradientOptions options)
    : impl_{std::make_unique<Impl>(&module, libtorch::unique_tensors(module.named_parameters()),
                                   libtorch::unique_tensors(module.named_buffers()), communicator,
                                   std::move(options))} {}

DataParallel::DataParallel(const torch::OrderedDict<std::string, Tensor>& parameters,
                           const Communicator& communicator, GradientOptions options)
    : impl_{std::make_unique<Impl>(nullptr, libtorch::unique_tensors(parameters),
                                   libtorch::NamedTensors{}, communicator, std::move(options))} {}

DataParallel::DataParallel(DataParallel&&) noexcept = default;
DataParallel& DataParallel::operator=(DataParallel&&) noexcept = default;
DataParallel::~DataParallel() = default;

double DataParallel::loss_scale() const { return impl_->reducer().loss_scale(); }
FinishedStep DataParallel::finish() { return impl_->finish(); }
FinishedStep DataParallel::flush() { return impl_->flush(); }
DataParallel::NoSync::~NoSync() { --pauses_; }
DataParallel::NoSync DataParallel::no_sync() { return NoSync{impl_->pauses()}; }
std::shared_ptr<const Arrivals> DataParallel::arrivals() { return impl_->arrivals(); }
void DataParallel::set_decay(const Tensor& parameter, double decay) {
  impl_->set_decay(parameter, decay);
}
void DataParallel::set_timeline(Timeline* timeline) { impl_->set_timeline(timeline); }
gradient::Reducer& DataParallel::reducer() { return impl_->reducer(); }

}  // namespace sluice
