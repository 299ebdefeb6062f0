// Documents of ours with edits, and as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "json_document.h"
#include "runs/json.h"
#include "runs/seal.h"
#include "source.h"

namespace tamis::fuzz {

// Replaces, adds or removes members somewhere in the document.
inline runs::Json edited(runs::Json document, Source& source) {
  const std::size_t count = source.below(4);
  for (std::size_t k = 0; k < count; ++k) {
    runs::Json* at = &document;
    while (at->is_structured() && !at->empty() && source.byte() % 3 != 0) {
      auto item = at->begin();
      std::advance(item, static_cast<std::ptrdiff_t>(source.below(at->size())));
      at = &*item;
    }
    const std::uint8_t action = source.byte() % 3;
    if (action == 0 && at->is_object() && !at->empty()) {
      auto item = at->begin();
      std::advance(item, static_cast<std::ptrdiff_t>(source.below(at->size())));
      at->erase(item);
      continue;
    }
    try {
      *at = runs::parse_json(make_value(source), "value");
    } catch (const std::runtime_error&) {
      continue;  // half of a pair of characters
    }
  }
  return document;
}

inline runs::Json edited(const char* text, Source& source) {
  return edited(runs::Json::parse(text), source);
}

// One in three has its checksum.
inline std::string document_text(const runs::Json& document, std::uint8_t choice) {
  if (choice % 3 == 0 && document.is_object()) return runs::sealed_line(document);
  return document.dump(-1, ' ', false, runs::Json::error_handler_t::replace);
}

}  // namespace tamis::fuzz
