// Traces, scores and labels as JSON: any text, and documents of the right form.
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "json_document.h"
#include "memory_file.h"
#include "program/shared/json_input.h"
#include "runs/seal.h"
#include "source.h"

namespace {

using tamis::fuzz::attempt;
using tamis::fuzz::Source;

std::string make_document(Source& source) {
  constexpr std::string_view kKeys[] = {"num_samples", "batches", "losses",
                                        "scores",      "labels",  "crc32c"};
  return source.byte() % 3 == 0 ? tamis::fuzz::make_value(source)
                                : tamis::fuzz::make_object(source, kKeys);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static tamis::fuzz::MemoryFile file;
  Source source(data, size);
  const bool is_raw = source.byte() % 2 == 0;
  const std::string text = is_raw ? source.rest() : make_document(source);
  file.write(text);
  attempt([&] {
    for (const float score : tamis::program::read_scores(file.path())) {
      if (std::isinf(score)) std::abort();
    }
  });
  attempt([&] { tamis::program::read_labels(file.path()); });
  attempt([&] {
    const auto document = tamis::runs::parse_sealed_json(text, "text", "").json;
    if (!document.is_object()) return;
    // A document that was read can be written, and is then the same.
    const auto again =
        tamis::runs::parse_sealed_json(tamis::runs::sealed_line(document), "text", "");
    if (!again.is_sealed || again.json != document) std::abort();
  });
  return 0;
}
