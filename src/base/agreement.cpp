#include "base/agreement.h"

#include <exception>
#include <stdexcept>
#include <vector>

#include "base/check.h"

namespace tamis::detail {

namespace {

std::vector<std::string> gather_texts(Communicator& communicator, std::string_view text) {
  std::vector<std::string> texts;
  for (const auto& bytes : communicator.all_gather(std::as_bytes(std::span(text)))) {
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return texts;
}

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line.empty() ? "nothing" : line;
}

}  // namespace

void together(Communicator& communicator, const std::function<void()>& action) {
  std::exception_ptr ours;
  std::string message;
  try {
    action();
  } catch (const std::exception& error) {
    ours = std::current_exception();
    message = error.what();
    if (message.empty()) message = "failed";
  }
  const std::vector<std::string> messages = gather_texts(communicator, message);
  if (ours) std::rethrow_exception(ours);
  for (std::size_t r = 0; r < messages.size(); ++r) {
    if (!messages[r].empty()) {
      throw std::runtime_error(concat("rank ", r, ": ", messages[r]));
    }
  }
}

void require_same(Communicator& communicator, std::string_view fields) {
  const std::vector<std::string> all = gather_texts(communicator, fields);
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    std::string_view theirs = all[r];
    std::string_view wanted = all[0];
    while (!theirs.empty() || !wanted.empty()) {
      const std::string_view their_line = take_line(theirs);
      const std::string_view wanted_line = take_line(wanted);
      if (their_line == wanted_line) continue;
      throw std::runtime_error(concat("all ranks must have the same settings, but rank ", r,
                                      " has ", their_line, " and rank 0 has ", wanted_line));
    }
  }
}

}  // namespace tamis::detail
