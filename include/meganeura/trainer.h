// Training loops: gradients, optimizer, accumulation and checkpoints compiled into one program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meganeura/compile.h"
#include "meganeura/data.h"
#include "meganeura/device.h"
#include "meganeura/export.h"
#include "meganeura/graph.h"
#include "meganeura/optim.h"
#include "meganeura/session.h"

namespace meganeura {

// Rank-0 inputs that the trainer sets by itself. Graphs with dropout take seed and step from here.
struct StepInputs {
  Tensor seed;           // u32 "seed": the run's seed
  Tensor random_step;    // u32 "random_step": counts micro-batches, for random ops
  Tensor learning_rate;  // f32 "learning_rate"
  Tensor updates;        // u32 "updates": optimizer steps done before this one
};
// The graph's step inputs, created when they are not there yet.
MEGANEURA_API StepInputs step_inputs(Graph& graph);

struct TrainerOptions {
  Optimizer optimizer = AdamW{};
  Schedule schedule = {};  // of the learning rate; constant at the optimizer's by default
  std::vector<ParameterGroup> groups = {};
  double clip_norm = 0.0;            // of all gradients together; 0: off
  uint32_t accumulate = 1;           // micro-batches per update
  uint64_t seed = 0;                 // of initial values and of random ops
  std::vector<Output> metrics = {};  // computed in every step beside the loss
  CompileOptions compile = {};
  int in_flight = 3;
};

// One submitted micro-batch.
class MEGANEURA_API StepHandle {
 public:
  float loss() const;                              // waits
  HostTensor metric(std::string_view name) const;  // waits
  bool updated() const { return updated_; }        // whether the parameters changed

 private:
  friend class Trainer;
  RunHandle run_;
  bool updated_ = false;
};

// What load() found.
struct LoadReport {
  std::vector<std::string> matched;
  std::vector<std::string> missing;     // in the trainer, not in the file
  std::vector<std::string> unexpected;  // in the file, not in the trainer
};
enum class LoadMode : uint8_t {
  kStrict,   // anything missing or unexpected is an Error(kFile) and nothing is copied
  kPartial,  // copies what matches by name, shape and dtype
};

class MEGANEURA_API Trainer {
 public:
  // Differentiates the loss with respect to its trainable parameters and compiles the step.
  Trainer(Device device, Tensor loss, TrainerOptions options = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;

  // The value for the next step() and later ones; copied before the call returns.
  void set(Tensor input, const TensorView& value);
  void set(std::string_view input, const TensorView& value);
  // Submits one micro-batch; after `accumulate` of them, the update with it.
  StepHandle step();

  uint64_t updates() const;  // optimizer steps done
  uint64_t micro_batches() const;
  float learning_rate() const;  // of the next update
  ParameterStore& parameters();
  const Program& program() const;
  const CompileReport& compile_report() const;

  // Parameters, optimizer state, accumulators, step counts and `extra` (such as a data loader's
  // position) as safetensors; write, fsync, rename.
  void save(const std::filesystem::path& path,
            const std::vector<std::pair<std::string, std::string>>& extra = {});
  // Restores what save() wrote; everything is checked before anything is copied. Error(kFile)
  // when optimizer, betas, accumulation or parameters do not fit. Returns the extra metadata.
  LoadReport load(const std::filesystem::path& path, LoadMode mode = LoadMode::kStrict,
                  std::vector<std::pair<std::string, std::string>>* extra = nullptr);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// ---- Loops over data -------------------------------------------------------------------------

// A micro-batch whose loss has arrived; a few younger ones may be under way.
struct StepEvent {
  uint64_t epoch = 0;   // from 0
  int64_t step = 0;     // micro-batch of the epoch, from 0
  int64_t steps = 0;    // micro-batches of an epoch
  int64_t samples = 0;  // rows of the batch that count
  float loss = 0.0f;
  float learning_rate = 0.0f;
  StepHandle handle;  // for metrics
};

struct EpochEvent {
  uint64_t epoch = 0;
  double mean_loss = 0.0;  // of the micro-batches this call ran
  LoaderPosition next;     // where training goes on; keep it in checkpoints
};

struct FitOptions {
  uint64_t epochs = 1;  // stops when the loader's position reaches this epoch
  size_t pending = 2;   // steps submitted before the oldest loss is read
  // Hands a batch to the trainer's inputs.
  std::function<void(Trainer& trainer, const Batch& batch)> feed;
  // Called for every step in order.
  std::function<void(const StepEvent& event)> on_step = {};
  // Called after every epoch, when nothing is under way; false stops.
  std::function<bool(const EpochEvent& event)> on_epoch = {};
};

// Trains from the loader's position on. Error(kInvalidArgument) without `feed` or with a loader
// whose last batches are not full: graphs are static, so give it drop_last.
MEGANEURA_API void fit(Trainer& trainer, DataLoader& loader, const FitOptions& options);

// ---- Inference -------------------------------------------------------------------------------

// Copies the parameters of a checkpoint into the store (for inference); optimizer state in the
// file is passed over. Everything is checked first.
MEGANEURA_API LoadReport load_parameters(const std::filesystem::path& path, ParameterStore& store,
                                         LoadMode mode = LoadMode::kStrict);

}  // namespace meganeura
