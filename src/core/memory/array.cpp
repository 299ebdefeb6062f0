// The first access to fresh memory costs many times what reading it does: the system finds a page,
// clears it and maps it, and on a virtual machine the host does the same once more. Plans and their
// bitmaps come and go in every epoch, so large blocks are kept and handed out again.
#include "tamis/array.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tamis::detail {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20U;
// Smaller blocks are left to the system's allocator, which keeps them itself.
constexpr std::size_t kSmallestKept = std::size_t{64} << 10U;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes < kHugePage ? 64 : kHugePage};
}

void* allocate_fresh(std::size_t bytes) {
  void* block = ::operator new(bytes, alignment_of(bytes));
#ifdef __linux__
  // Only advice: without huge pages random access is slower but right.
  if (bytes >= kHugePage) (void)madvise(block, bytes, MADV_HUGEPAGE);
#endif
  return block;
}

void free_fresh(void* block, std::size_t bytes) noexcept {
  ::operator delete(block, alignment_of(bytes));
}

// Blocks in use and blocks kept. Together they never take more than 17/16 of what was once in use
// at the same time, and nothing is kept once nothing is in use. Without the sixteenth, a bitmap
// that does not quite fit would drive out the order of the plan before, which is worth far more.
class BlockPool {
 public:
  void* allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    // The smallest one that is large enough, unless most of it would be wasted.
    auto best = kept_.end();
    for (auto block = kept_.begin(); block != kept_.end(); ++block) {
      if (block->bytes < bytes || block->bytes / 8 > bytes) continue;
      if (best == kept_.end() || block->bytes < best->bytes) best = block;
    }
    if (best != kept_.end()) {
      used_.push_back(*best);
      kept_.erase(best);
    } else {
      make_room(bytes);
      used_.push_back({allocate_fresh(bytes), bytes});
    }
    kept_.reserve(kept_.size() + used_.size());  // so that free() cannot fail
    peak_ = std::max(peak_, total(used_));
    return used_.back().data;
  }

  void free(const void* data) noexcept {
    const std::lock_guard lock(mutex_);
    const auto block =
        std::find_if(used_.begin(), used_.end(), [&](const Block& b) { return b.data == data; });
    kept_.push_back(*block);
    used_.erase(block);
    if (used_.empty()) {
      release_kept();
      peak_ = 0;
    }
  }

 private:
  struct Block {
    void* data;
    std::size_t bytes;
  };

  static std::size_t total(const std::vector<Block>& blocks) {
    std::size_t sum = 0;
    for (const Block& block : blocks) sum += block.bytes;
    return sum;
  }

  // Gives blocks back, the oldest first, until `bytes` more stay within the limit.
  void make_room(std::size_t bytes) {
    const std::size_t needed = total(used_) + bytes;
    const std::size_t limit = std::max(peak_, needed) / 16 * 17;
    while (!kept_.empty() && needed + total(kept_) > limit) {
      free_fresh(kept_.front().data, kept_.front().bytes);
      kept_.erase(kept_.begin());
    }
  }

  void release_kept() {
    for (const Block& block : kept_) free_fresh(block.data, block.bytes);
    kept_.clear();
  }

  std::mutex mutex_;
  std::vector<Block> used_;
  std::vector<Block> kept_;
  std::size_t peak_ = 0;  // most bytes that were in use at the same time
};

BlockPool& pool() {
  // Never destroyed: arrays of static objects may outlive it otherwise.
  static auto* const pool = new BlockPool;
  return *pool;
}

// With sanitizers every block is fresh, so that they see what is used after its end.
#ifdef TAMIS_SANITIZED
constexpr bool kReuse = false;
#else
constexpr bool kReuse = true;
#endif

}  // namespace

void* allocate_block(std::size_t bytes) {
  const bool is_kept = kReuse && bytes >= kSmallestKept;
  return is_kept ? pool().allocate(bytes) : allocate_fresh(bytes);
}

void free_block(void* block, std::size_t bytes) noexcept {
  if (kReuse && bytes >= kSmallestKept) {
    pool().free(block);
  } else {
    free_fresh(block, bytes);
  }
}

}  // namespace tamis::detail
