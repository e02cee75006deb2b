#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/format.h"
#include "meganeura/safetensors.h"
#include "program/program.h"
#include "train/trainer_state.h"

namespace meganeura {
namespace {

constexpr std::string_view kFormat = "meganeura.checkpoint";
constexpr std::string_view kVersion = "1";
constexpr std::string_view kExtraPrefix = "extra.";
constexpr std::string_view kOptimizerSlots[] = {".momentum_buffer", ".exp_avg", ".exp_avg_sq",
                                                ".accumulator"};

bool is_optimizer_slot(std::string_view name) {
  return std::any_of(std::begin(kOptimizerSlots), std::end(kOptimizerSlots),
                     [&](std::string_view slot) { return name.ends_with(slot); });
}

std::string describe(const SGD& sgd) {
  return cat("sgd(momentum=", sgd.momentum, ", dampening=", sgd.dampening,
             ", weight_decay=", sgd.weight_decay, ", nesterov=", sgd.nesterov, ")");
}

template <class AnyAdam>
std::string describe_adam(std::string_view name, const AnyAdam& adam) {
  return cat(name, "(beta1=", adam.beta1, ", beta2=", adam.beta2, ", epsilon=", adam.epsilon,
             ", weight_decay=", adam.weight_decay, ")");
}

std::string describe(const Adam& adam) { return describe_adam("adam", adam); }
std::string describe(const AdamW& adam) { return describe_adam("adamw", adam); }

const std::string& metadata_value(const Metadata& metadata, const std::string& key,
                                  const std::string& file) {
  auto found = metadata.find(key);
  if (found != metadata.end()) return found->second;
  fail(ErrorKind::kFile, "The file ", file, " has no metadata \"", key,
       "\", so it is no training checkpoint. Load its parameters with load_parameters instead.");
}

uint64_t metadata_number(const Metadata& metadata, const std::string& key,
                         const std::string& file) {
  const std::string& text = metadata_value(metadata, key, file);
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) {
    fail(ErrorKind::kFile, "The metadata \"", key, "\" of ", file, " is \"", text,
         "\", not a whole number. The checkpoint is damaged.");
  }
  return value;
}

struct Target {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};

std::vector<Target> targets_of(const ParameterStore& store) {
  std::vector<Target> targets;
  for (const std::string& name : store.names()) {
    const TensorType type = store.type(name);
    targets.push_back({name, type.dtype, type.shape});
  }
  return targets;
}

struct Match {
  LoadReport report;
  std::vector<const NamedTensor*> tensors;  // by entry of report.matched
};

// Pairs what the store holds with what the file holds; `wanted` says which names take part.
template <class Wanted>
Match match(const ParameterStore& store, const SafetensorsFile& file, const std::string& path,
            LoadMode mode, const Wanted& wanted) {
  Match result;
  const std::vector<Target> targets = targets_of(store);
  for (const Target& target : targets) {
    if (!wanted(target.name)) continue;
    const NamedTensor* tensor = file.find(target.name);
    const bool fits =
        tensor != nullptr && tensor->dtype == target.dtype && tensor->shape == target.shape;
    if (tensor != nullptr && !fits && mode == LoadMode::kStrict) {
      fail(ErrorKind::kFile, "The tensor \"", target.name, "\" is ", tensor->dtype, tensor->shape,
           " in ", path, " but ", target.dtype, target.shape, " here. Nothing was loaded.");
    }
    if (fits) {
      result.report.matched.push_back(target.name);
      result.tensors.push_back(tensor);
    } else {
      result.report.missing.push_back(target.name);
    }
  }
  for (const NamedTensor& tensor : file.tensors()) {
    const bool used = std::find(result.report.matched.begin(), result.report.matched.end(),
                                tensor.name) != result.report.matched.end();
    if (!used && wanted(tensor.name)) result.report.unexpected.push_back(tensor.name);
  }
  if (mode == LoadMode::kStrict &&
      !(result.report.missing.empty() && result.report.unexpected.empty())) {
    fail(ErrorKind::kFile, "The file ", path, " does not fit: missing [",
         join(result.report.missing), "], unexpected [", join(result.report.unexpected),
         "]. Nothing was loaded. Use LoadMode::kPartial to load what matches.");
  }
  return result;
}

void copy(const Match& matched, ParameterStore& store) {
  for (const NamedTensor* tensor : matched.tensors) {
    store.write(tensor->name, {tensor->bytes.data(), tensor->dtype, tensor->shape});
  }
}

}  // namespace

std::string describe_optimizer(const TrainerOptions& options) {
  return std::visit([](const auto& optimizer) { return describe(optimizer); }, options.optimizer);
}

void Trainer::save(const std::filesystem::path& path,
                   const std::vector<std::pair<std::string, std::string>>& extra) {
  Implementation& impl = *implementation_;
  impl.session->wait();
  Metadata metadata = {{"format", std::string(kFormat)},
                       {"version", std::string(kVersion)},
                       {"optimizer", describe_optimizer(impl.options)},
                       {"accumulate", cat(impl.options.accumulate)},
                       {"updates", cat(impl.updates)},
                       {"micro_batches", cat(impl.micro_batches)},
                       {"seed", cat(impl.options.seed)}};
  for (const auto& [key, value] : extra) metadata[cat(kExtraPrefix, key)] = value;
  std::vector<HostTensor> values;
  std::vector<NamedTensor> tensors;
  for (const ProgramTensor& tensor : impl.program->tensors) {
    if (tensor.kind != TensorKind::kParameter && tensor.kind != TensorKind::kState) continue;
    values.push_back(impl.store.read(tensor.name));
    tensors.push_back({tensor.name, tensor.dtype, tensor.shape, {}});
  }
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].bytes = values[i].bytes;
  save_safetensors(path, tensors, metadata);
}

LoadReport Trainer::load(const std::filesystem::path& path, LoadMode mode,
                         std::vector<std::pair<std::string, std::string>>* extra) {
  Implementation& impl = *implementation_;
  impl.session->wait();
  const SafetensorsFile file = SafetensorsFile::open(path);
  const Metadata& metadata = file.metadata();
  const std::string name = path.string();
  const std::string& version = metadata_value(metadata, "version", name);
  if (metadata_value(metadata, "format", name) != kFormat || version != kVersion) {
    fail(ErrorKind::kUnsupported, "The file ", name, " is a checkpoint of version \"", version,
         "\"; this library reads version ", kVersion, ".");
  }
  const std::string optimizer = describe_optimizer(impl.options);
  const std::string& saved = metadata_value(metadata, "optimizer", name);
  const uint64_t accumulate = metadata_number(metadata, "accumulate", name);
  const bool same = saved == optimizer && accumulate == impl.options.accumulate;
  if (!same && mode == LoadMode::kStrict) {
    fail(
        ErrorKind::kFile, "The checkpoint ", name, " was trained with ", saved, " accumulating ",
        accumulate, " micro-batches, but this trainer uses ", optimizer, " accumulating ",
        impl.options.accumulate,
        ". Nothing was loaded. Use the same settings, or LoadMode::kPartial to start the optimizer "
        "anew.");
  }
  const uint64_t updates = metadata_number(metadata, "updates", name);
  const uint64_t micro_batches = metadata_number(metadata, "micro_batches", name);
  const uint64_t seed = metadata_number(metadata, "seed", name);
  const Match matched = match(impl.store, file, name, mode, [&](std::string_view tensor) {
    return same || !is_optimizer_slot(tensor);
  });
  copy(matched, impl.store);
  if (same) {
    impl.updates = updates;
    impl.micro_batches = micro_batches;
    impl.options.seed = seed;
  }
  if (extra != nullptr) {
    extra->clear();
    for (const auto& [key, value] : metadata) {
      if (key.starts_with(kExtraPrefix))
        extra->emplace_back(key.substr(kExtraPrefix.size()), value);
    }
  }
  return matched.report;
}

LoadReport load_parameters(const std::filesystem::path& path, ParameterStore& store,
                           LoadMode mode) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const Match matched = match(store, file, path.string(), mode,
                              [](std::string_view tensor) { return !is_optimizer_slot(tensor); });
  copy(matched, store);
  return matched.report;
}

}  // namespace meganeura
