// Ranks that are threads: every call puts its bytes on a common table and waits for the others.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>

#include "base/check.h"
#include "tamis/communicator.h"

namespace tamis {

namespace {

using Bytes = std::vector<std::byte>;

// One call after the other: a rank takes the results of a call before it can enter the next.
class Table {
 public:
  Table(std::size_t size, std::chrono::milliseconds time_limit)
      : time_limit_(time_limit), given_(size), num_calls_(size, 0) {}

  std::size_t size() const { return given_.size(); }
  std::chrono::milliseconds time_limit() const { return time_limit_; }

  std::vector<Bytes> exchange(std::size_t rank, std::span<const std::byte> bytes) {
    std::unique_lock lock(mutex_);
    given_[rank].assign(bytes.begin(), bytes.end());
    const std::uint64_t call = ++num_calls_[rank];
    if (is_reached(call)) {
      result_ = given_;
      num_done_ = call;
      changed_.notify_all();
    } else if (!changed_.wait_for(lock, time_limit_, [&] { return num_done_ >= call; })) {
      std::string missing;
      for (std::size_t r = 0; r < size(); ++r) {
        if (num_calls_[r] < call) missing += detail::concat(missing.empty() ? "" : ", ", r);
      }
      throw std::runtime_error(detail::concat("rank ", rank, ": rank ", missing,
                                              " did not answer within ", time_limit_.count(),
                                              " ms"));
    }
    return result_;
  }

 private:
  bool is_reached(std::uint64_t call) const {
    return std::all_of(num_calls_.begin(), num_calls_.end(),
                       [&](std::uint64_t n) { return n >= call; });
  }

  std::chrono::milliseconds time_limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Bytes> given_;
  std::vector<Bytes> result_;
  std::vector<std::uint64_t> num_calls_;
  std::uint64_t num_done_ = 0;
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(std::shared_ptr<Table> table, std::size_t rank)
      : table_(std::move(table)), rank_(rank) {}

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return table_->size(); }
  std::chrono::milliseconds time_limit() const override { return table_->time_limit(); }

 private:
  void reduce(std::span<std::int64_t> numbers, Reduction reduction) override {
    const std::vector<Bytes> all = table_->exchange(rank_, std::as_bytes(numbers));
    std::vector<std::int64_t> theirs(numbers.size());
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (all[r].size() != numbers.size_bytes()) {
        throw std::runtime_error(detail::concat("rank ", r, " reduces ", all[r].size() / 8,
                                                " numbers, rank ", rank_, " ", numbers.size()));
      }
      if (r == rank_) continue;
      std::memcpy(theirs.data(), all[r].data(), all[r].size());
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (reduction == Reduction::sum) {
          numbers[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(numbers[i]) +
                                                 static_cast<std::uint64_t>(theirs[i]));
        } else {
          numbers[i] = reduction == Reduction::minimum ? std::min(numbers[i], theirs[i])
                                                       : std::max(numbers[i], theirs[i]);
        }
      }
    }
  }

  std::vector<Bytes> gather(std::span<const std::byte> bytes) override {
    return table_->exchange(rank_, bytes);
  }

  std::shared_ptr<Table> table_;
  std::size_t rank_;
};

}  // namespace

std::vector<std::shared_ptr<Communicator>> make_thread_ranks(std::size_t size,
                                                             std::chrono::milliseconds time_limit) {
  detail::require(size >= 1, "make_thread_ranks", "size", "at least 1", size);
  const auto table = std::make_shared<Table>(size, time_limit);
  std::vector<std::shared_ptr<Communicator>> ranks;
  for (std::size_t r = 0; r < size; ++r) ranks.push_back(std::make_shared<ThreadRank>(table, r));
  return ranks;
}

}  // namespace tamis
