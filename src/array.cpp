#include "winnow/array.h"

#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace winnow::detail {

namespace {
constexpr std::size_t kHugePage = std::size_t{2} << 20U;
constexpr std::align_val_t alignment(std::size_t bytes) {
  return std::align_val_t{bytes >= kHugePage ? kHugePage : 64};
}
}  // namespace

void* allocate_block(std::size_t bytes) {
  void* block = ::operator new(bytes, alignment(bytes));
#ifdef __linux__
  // Only advice: without huge pages random access is slower but right.
  if (bytes >= kHugePage) (void)madvise(block, bytes, MADV_HUGEPAGE);
#endif
  return block;
}

void free_block(void* block, std::size_t bytes) noexcept {
  ::operator delete(block, alignment(bytes));
}

}  // namespace winnow::detail
