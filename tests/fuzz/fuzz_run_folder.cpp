// Run folders and comparisons: settings and metrics with edits, with and without a checksum.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "edited_json.h"
#include "memory_file.h"
#include "runs/comparison.h"
#include "runs/gallery.h"
#include "runs/run.h"
#include "runs/sample_list.h"
#include "runs/seal.h"
#include "runs/sweep.h"
#include "source.h"

namespace {

namespace fs = std::filesystem;
using tamis::fuzz::attempt;
using tamis::fuzz::document_text;
using tamis::fuzz::edited;
using tamis::fuzz::Source;
using tamis::runs::Json;

constexpr const char* kConfig = R"({"format": "tamis-run", "format_version": 2,
  "method": {"name": "full"}, "seed": 0, "epochs": 2, "name": "full",
  "data": {"name": "coco", "num_train": 100}, "model": {"name": "m"},
  "training": {"batch_size": 8}, "environment": {"cpu": "x", "cores": 2},
  "metrics": [{"name": "mAP", "unit": "fraction", "direction": "higher", "headline": true},
              {"name": "loss", "direction": "lower"}]})";
constexpr const char* kOldConfig = R"({"format": "tamis-run", "format_version": 1,
  "method": "full", "training": {"seed": 0, "epochs": 2},
  "pruning": {"score": {}, "seed": 1}, "data": {"name": "coco", "num_train": 100}})";
constexpr const char* kEpoch = R"({"epoch": 0, "samples": 60, "pruned": 40, "steps": 8,
  "train_seconds": 2.5, "prune_seconds": 0.5, "test_seconds": 1, "learning_rate": 0.1,
  "values": {"mAP": 0.5, "loss": 1.5},
  "score_histogram": {"low": 0, "high": 2, "counts": [1, 2, 3]}})";
constexpr const char* kCompare = R"({"format": "tamis-compare", "format_version": 1,
  "methods": ["full", "x"], "seeds": [0, 1], "baseline": "full",
  "config": {"training": {"epochs": 2}}, "pruning": {"x": {"alpha": 0.5}}})";
constexpr const char* kSweep = R"({"format": "tamis-sweep", "format_version": 1,
  "method": "bls-infobatch", "option": "alpha", "values": [0.5, 0.7]})";

constexpr const char* kSamples = R"({"format": "tamis-samples", "format_version": 1,
  "labels": [0, 1, 1], "true_labels": [0, 0, 1], "classes": ["a", "b"], "indices": [0, 5, 9],
  "files": ["a/1", "b/2", "b/3"]})";
constexpr const char* kGallery = R"({"format": "tamis-gallery", "format_version": 1,
  "score": "loss", "epochs": [0, 2], "num_never_learned": 1, "num_never_forgotten": 90,
  "groups": {"hardest": [2, 5], "easiest": [5], "forgotten": []},
  "samples": [{"sample": 2, "place": "2", "label": "a", "true_label": "b", "predicted": "b",
               "forgotten": 3, "scores": [1.5, null], "picture": "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAAAAABX3VL4AAAADklEQVR42mP4z8DA8B8ABgAB/2U0+PcAAAAASUVORK5CYII="},
              {"sample": 5, "place": "b/5", "scores": [0, 1], "picture": "iVBORw0KGgo="}]})";

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void use(const fs::path& folder) {
  attempt([&] {
    const auto run = tamis::runs::read_run(folder / "full-seed0");
    tamis::runs::describe_task(run.config);
    if (run.epochs.empty()) return;
    const auto result = tamis::runs::summarize_run(run);
    if (run.is_finished() && !std::isfinite(result.value)) std::abort();
  });
  attempt([&] {
    const auto plan = tamis::runs::read_plan(folder);
    for (const auto& method : plan.methods) {
      if (method.name.find('/') != std::string::npos) std::abort();
    }
    tamis::runs::summarize(tamis::runs::read_runs(folder, plan));
  });
  attempt([&] { tamis::runs::read_sweep(folder); });
  attempt([&] {
    const auto samples = tamis::runs::read_samples(folder / "full-seed0", 3);
    if (samples && !samples->labels.empty()) samples->class_name(samples->labels[2]);
    if (samples) samples->place(2);
  });
  attempt([&] { tamis::runs::read_gallery(folder / "full-seed0", 100); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tamis::fuzz::MemoryFolder memory;
  const fs::path& folder = memory.path();
  Source source(data, size);
  const std::uint8_t choice = source.byte();
  const fs::path run = folder / "full-seed0";
  fs::create_directory(run);
  const bool is_raw = choice % 4 == 0;
  write(run / "config.json",
        is_raw
            ? source.text()
            : document_text(edited(choice % 8 == 1 ? kOldConfig : kConfig, source), source.byte()));
  std::string lines;
  for (std::size_t epoch = 0; epoch < 2; ++epoch) {
    Json line = edited(kEpoch, source);
    if (line.is_object() && source.byte() % 8 != 1) line["epoch"] = epoch;
    lines += document_text(line, source.byte()) + (source.byte() % 8 == 1 ? "" : "\n");
  }
  write(folder / "compare.json", document_text(edited(kCompare, source), source.byte()));
  write(folder / "sweep.json", document_text(edited(kSweep, source), source.byte()));
  write(run / "samples.json", document_text(edited(kSamples, source), source.byte()));
  write(run / "gallery.json", document_text(edited(kGallery, source), source.byte()));
  write(run / "metrics.jsonl", is_raw ? source.rest() : lines);
  use(folder);
  return 0;
}
