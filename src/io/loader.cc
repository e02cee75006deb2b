#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "io/batch.h"

namespace meganeura {

struct DataLoader::Implementation {
  Implementation(std::shared_ptr<const Dataset> data, LoaderOptions chosen)
      : dataset(std::move(data)), options(std::move(chosen)), maker(*dataset, options) {}
  ~Implementation() { stop(); }

  Batch make_batch(LoaderPosition at) {
    Batch batch = maker.make(at);
    if (options.transform) options.transform(batch);
    return batch;
  }

  // The prefetching thread: fills the queue until it is told to stop or a batch fails.
  void produce(LoaderPosition at) {
    try {
      while (true) {
        Batch batch = make_batch(at);
        at = batch.next;
        std::unique_lock lock(mutex);
        changed.wait(
            lock, [&] { return stopping || queue.size() < static_cast<size_t>(options.prefetch); });
        if (stopping) return;
        queue.push_back(std::move(batch));
        changed.notify_all();
      }
    } catch (...) {
      std::lock_guard lock(mutex);
      failure = std::current_exception();
      changed.notify_all();
    }
  }

  void stop() {
    if (!thread.joinable()) return;
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    thread.join();
  }

  Batch take_prefetched() {
    if (!thread.joinable()) thread = std::thread([this, at = position] { produce(at); });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !queue.empty() || failure; });
    // Batches that were finished before the failure come first.
    if (queue.empty()) std::rethrow_exception(failure);
    Batch batch = std::move(queue.front());
    queue.pop_front();
    changed.notify_all();
    return batch;
  }

  Batch take_direct() {
    if (failure) std::rethrow_exception(failure);
    try {
      return make_batch(position);
    } catch (...) {
      failure = std::current_exception();
      throw;
    }
  }

  const std::shared_ptr<const Dataset> dataset;
  const LoaderOptions options;
  BatchMaker maker;  // used by the thread while there is one
  LoaderPosition position;
  std::thread thread;
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::deque<Batch> queue;
  std::exception_ptr failure;
  bool stopping = false;
};

namespace {

std::shared_ptr<const Dataset> require(std::shared_ptr<const Dataset> dataset) {
  if (!dataset)
    fail(ErrorKind::kInvalidArgument, "A DataLoader needs a data set, but the pointer is null.");
  return dataset;
}

}  // namespace

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : implementation_(
          std::make_unique<Implementation>(require(std::move(dataset)), std::move(options))) {}

DataLoader::DataLoader(Dataset dataset, LoaderOptions options)
    : DataLoader(std::make_shared<const Dataset>(std::move(dataset)), std::move(options)) {}

DataLoader::~DataLoader() = default;
DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&&) noexcept = default;

Batch DataLoader::next() {
  Implementation& self = *implementation_;
  Batch batch = self.options.prefetch > 0 ? self.take_prefetched() : self.take_direct();
  self.position = batch.next;
  return batch;
}

LoaderPosition DataLoader::position() const { return implementation_->position; }

void DataLoader::seek(LoaderPosition position) {
  Implementation& self = *implementation_;
  self.maker.check(position);
  self.stop();
  self.queue.clear();
  self.failure = nullptr;
  self.stopping = false;
  self.position = position;
}

int64_t DataLoader::batches_per_epoch() const { return implementation_->maker.batches_per_epoch(); }

const Dataset& DataLoader::dataset() const { return *implementation_->dataset; }

const LoaderOptions& DataLoader::options() const { return implementation_->options; }

}  // namespace meganeura
