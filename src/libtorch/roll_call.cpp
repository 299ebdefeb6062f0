#include "libtorch/roll_call.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace tamis::libtorch {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{20};

class RollCall {
 public:
  RollCall(c10::intrusive_ptr<c10d::Store> store, std::string name, std::size_t rank,
           std::size_t size)
      : store_(std::move(store)), name_(std::move(name)), rank_(rank), size_(size) {}

  std::vector<std::size_t> run(std::chrono::milliseconds patience) {
    const std::vector<std::size_t> missing = gather("here", Clock::now() + patience);
    if (rank_ != 0 || missing.size() + 1 == size_) {
      answer("done");
    } else {
      gather("done", Clock::now() + patience / 5);
    }
    return missing;
  }

 private:
  std::string key(const char* what, std::size_t rank) const {
    return name_ + "/" + what + "/" + std::to_string(rank);
  }
  void answer(const char* what) { store_->set(key(what, rank_), std::vector<std::uint8_t>{1}); }

  // Answers, and returns who has not until the deadline.
  std::vector<std::size_t> gather(const char* what, Clock::time_point deadline) {
    answer(what);
    std::vector<std::size_t> missing;
    for (;;) {
      missing.clear();
      for (std::size_t r = 0; r < size_; ++r) {
        if (!store_->check({key(what, r)})) missing.push_back(r);
      }
      if (missing.empty() || Clock::now() >= deadline) return missing;
      std::this_thread::sleep_for(kPause);
    }
  }

  c10::intrusive_ptr<c10d::Store> store_;
  std::string name_;
  std::size_t rank_;
  std::size_t size_;
};

struct Answer {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  std::optional<std::vector<std::size_t>> missing;
};

}  // namespace

std::optional<std::vector<std::size_t>> call_roll(const c10::intrusive_ptr<c10d::Store>& store,
                                                  const std::string& name, std::size_t rank,
                                                  std::size_t size,
                                                  std::chrono::milliseconds patience) {
  // On a thread of its own, left behind if need be: a call to a store whose process hangs never
  // returns.
  const auto answer = std::make_shared<Answer>();
  std::thread([=] {
    std::optional<std::vector<std::size_t>> missing;
    try {
      missing = RollCall(store, name, rank, size).run(patience);
    } catch (const std::exception&) {
      missing.reset();  // the store is gone
    }
    const std::lock_guard lock(answer->mutex);
    answer->missing = std::move(missing);
    answer->is_done = true;
    answer->changed.notify_all();
  }).detach();
  std::unique_lock lock(answer->mutex);
  answer->changed.wait_for(lock, patience + patience / 3, [&] { return answer->is_done; });
  return answer->missing;
}

std::string list_ranks(const std::vector<std::size_t>& ranks) {
  std::string text;
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    if (k > 0) text += k + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[k]);
  }
  return text;
}

}  // namespace tamis::libtorch
