#include <deque>

#include "base/check.h"
#include "meganeura/trainer.h"

namespace meganeura {
namespace {

class Fit {
 public:
  Fit(Trainer& trainer, DataLoader& loader, const FitOptions& options)
      : trainer_(trainer), loader_(loader), options_(options) {}

  // Returns whether to go on.
  bool run_epoch() {
    const uint64_t epoch = loader_.position().epoch;
    loss_sum_ = 0.0;
    losses_ = 0;
    while (loader_.position().epoch == epoch) {
      submit(loader_.next());
      if (under_way_.size() > options_.pending) collect();
    }
    while (!under_way_.empty()) collect();
    if (!options_.on_epoch) return true;
    const double mean = losses_ == 0 ? 0.0 : loss_sum_ / static_cast<double>(losses_);
    return options_.on_epoch({epoch, mean, loader_.position()});
  }

 private:
  void submit(const Batch& batch) {
    StepEvent event;
    event.epoch = batch.position.epoch;
    event.step = batch.position.index / loader_.options().batch_size;
    event.steps = loader_.batches_per_epoch();
    event.samples = batch.count;
    event.learning_rate = trainer_.learning_rate();
    options_.feed(trainer_, batch);
    event.handle = trainer_.step();
    under_way_.push_back(std::move(event));
  }

  void collect() {
    StepEvent event = std::move(under_way_.front());
    under_way_.pop_front();
    event.loss = event.handle.loss();
    loss_sum_ += static_cast<double>(event.loss);
    ++losses_;
    if (options_.on_step) options_.on_step(event);
  }

  Trainer& trainer_;
  DataLoader& loader_;
  const FitOptions& options_;
  std::deque<StepEvent> under_way_;
  double loss_sum_ = 0.0;
  int64_t losses_ = 0;
};

}  // namespace

void fit(Trainer& trainer, DataLoader& loader, const FitOptions& options) {
  if (!options.feed) {
    fail(ErrorKind::kInvalidArgument,
         "FitOptions::feed is empty; it must set the trainer's inputs from a batch.");
  }
  const int64_t size = loader.dataset().size();
  const int64_t batch = loader.options().batch_size;
  if (!loader.options().drop_last && size % batch != 0) {
    fail(ErrorKind::kInvalidArgument, "The data set of ", size,
         " samples does not divide into batches of ", batch,
         ", and padding rows would count as training samples. Set LoaderOptions::drop_last.");
  }
  Fit run(trainer, loader, options);
  while (loader.position().epoch < options.epochs) {
    if (!run.run_epoch()) return;
  }
}

}  // namespace meganeura
