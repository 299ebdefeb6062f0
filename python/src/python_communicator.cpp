#include "python_communicator.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "arrays.h"

namespace tamis::python {

namespace {

// Called without the interpreter's lock.
class PythonCommunicator final : public Communicator {
 public:
  explicit PythonCommunicator(nb::object ranks)
      : rank_(nb::cast<std::size_t>(ranks.attr("rank"))),
        size_(nb::cast<std::size_t>(ranks.attr("size"))),
        time_limit_(static_cast<std::int64_t>(1000.0 * nb::cast<double>(ranks.attr("time_limit")))),
        ranks_(std::move(ranks)) {}
  PythonCommunicator(const PythonCommunicator&) = delete;
  PythonCommunicator& operator=(const PythonCommunicator&) = delete;
  // A constructor of Pruner that throws destroys its communicator without the lock.
  ~PythonCommunicator() override {
    const nb::gil_scoped_acquire acquire;
    ranks_.reset();
  }

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return size_; }
  std::chrono::milliseconds time_limit() const override { return time_limit_; }

 private:
  // An error that is not about the ranks, such as an interrupt, stays what it is.
  template <typename Function>
  static auto call(Function&& function) {
    const nb::gil_scoped_acquire acquire;
    try {
      return function();
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_RuntimeError)) throw;
      throw std::runtime_error(nb::str(error.value()).c_str());
    }
  }

  void reduce(std::span<std::int64_t> numbers, Reduction reduction) override {
    call([&] {
      const char* const name = reduction == Reduction::sum       ? "sum"
                               : reduction == Reduction::minimum ? "min"
                                                                 : "max";
      const Indices result(ranks_.attr("reduce")(
          to_numpy(std::vector<std::int64_t>(numbers.begin(), numbers.end())), name));
      std::ranges::copy(result.span(), numbers.begin());
    });
  }

  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) override {
    return call([&] {
      std::vector<std::vector<std::byte>> all;
      for (const nb::handle item : ranks_.attr("gather")(nb::bytes(bytes.data(), bytes.size()))) {
        const auto part = nb::cast<nb::bytes>(item);
        const auto* const begin = static_cast<const std::byte*>(part.data());
        all.emplace_back(begin, begin + part.size());
      }
      return all;
    });
  }

  std::size_t rank_;
  std::size_t size_;
  std::chrono::milliseconds time_limit_;
  nb::object ranks_;
};

}  // namespace

std::shared_ptr<Communicator> make_communicator(nb::object ranks) {
  if (ranks.is_none()) return nullptr;
  return std::make_shared<PythonCommunicator>(std::move(ranks));
}

}  // namespace tamis::python
