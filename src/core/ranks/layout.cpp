#include "tamis/layout.h"

#include <stdexcept>

#include "base/check.h"

namespace tamis {

Layout parse_layout(std::string_view name) {
  for (const Layout layout : {Layout::automatic, Layout::replicated, Layout::sharded}) {
    if (name == to_text(layout)) return layout;
  }
  throw std::invalid_argument(
      detail::concat("layout must be one of automatic, replicated, sharded, got ", name));
}

std::string_view to_text(Layout layout) {
  if (layout == Layout::automatic) return "automatic";
  if (layout == Layout::external) return "external";
  return layout == Layout::replicated ? "replicated" : "sharded";
}

}  // namespace tamis
