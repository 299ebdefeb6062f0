#include "training/trainer/running_epoch.h"

namespace tamis::training {

runs::Json to_json(const RunningEpoch& running) {
  runs::Json json = {{"steps", running.steps},
                     {"samples", running.samples},
                     {"correct", running.correct},
                     {"loss_sum", running.loss_sum},
                     {"learning_rate", running.learning_rate},
                     {"train_seconds", running.train_seconds},
                     {"prune_seconds", running.prune_seconds},
                     {"score_seconds", running.score_seconds},
                     {"ran_seconds", running.processor_time.running},
                     {"waited_seconds", running.processor_time.waiting}};
  if (running.processor_seconds) json["processor_seconds"] = *running.processor_seconds;
  return json;
}

RunningEpoch running_from_json(const runs::Json& json, const std::string& source) {
  const runs::Fields fields(json, source);
  // Checkpoints of older versions do not have it.
  const auto amount_or_zero = [&](const char* key) {
    return fields.find(key) != nullptr ? fields.amount(key) : 0.0;
  };
  return {.steps = fields.whole("steps"),
          .samples = fields.whole("samples"),
          .correct = fields.whole("correct"),
          .loss_sum = fields.finite("loss_sum"),
          .learning_rate = fields.finite("learning_rate"),
          .train_seconds = fields.finite("train_seconds"),
          .prune_seconds = fields.finite("prune_seconds"),
          .processor_seconds = fields.find("processor_seconds") != nullptr
                                   ? std::optional(fields.finite("processor_seconds"))
                                   : std::nullopt,
          .score_seconds = amount_or_zero("score_seconds"),
          .processor_time = {.running = amount_or_zero("ran_seconds"),
                             .waiting = amount_or_zero("waited_seconds")}};
}

}  // namespace tamis::training
