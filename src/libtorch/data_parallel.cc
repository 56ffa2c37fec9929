#include "sluice/torch/data_parallel.h"

#include <utility>

#include "libtorch/model_reducer.h"

namespace sluice {

struct DataParallel::Impl : libtorch::ModelReducer {
  using ModelReducer::ModelReducer;
};

DataParallel::DataParallel(torch::nn::Module& module, const Communicator& communicator,
                           GradientOptions options)
    : impl_{std::make_unique<Impl>(module, communicator, std::move(options))} {}
DataParallel::DataParallel(const torch::OrderedDict<std::string, torch::Tensor>& parameters,
                           const Communicator& communicator, GradientOptions options)
    : impl_{std::make_unique<Impl>(parameters, communicator, std::move(options))} {}

DataParallel::DataParallel(DataParallel&&) noexcept = default;
DataParallel& DataParallel::operator=(DataParallel&&) noexcept = default;
DataParallel::~DataParallel() = default;

double DataParallel::loss_scale() const { return impl_->loss_scale(); }
FinishedStep DataParallel::finish() { return impl_->finish(); }
FinishedStep DataParallel::flush() { return impl_->flush(); }
void DataParallel::attach(MomentumOptimizer& optimizer) { impl_->attach(optimizer); }
void DataParallel::set_timeline(Timeline* timeline) { impl_->set_timeline(timeline); }

DataParallel::NoSync::~NoSync() { --pauses_; }
DataParallel::NoSync DataParallel::no_sync() { return NoSync{impl_->pauses()}; }

}  // namespace sluice
