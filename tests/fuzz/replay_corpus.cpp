// A main for the harnesses without libFuzzer, so that every compiler runs them: each file of the
// corpus, and then changes of it for a while. The changes are drawn with a given seed: another run
// makes the same, and more of them on a faster machine.
//
// Usage: fuzz_NAME CORPUS [SECONDS [SEED]]
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;
using Input = std::vector<std::uint8_t>;

// Of a machine that is busy with other things; an input takes a few milliseconds.
constexpr unsigned kSecondsPerInput = 60;

// More than what is loaded. A small input must not take more, as `make fuzz` has it.
constexpr rlim_t kMemoryPerInput = rlim_t{1} << 30U;

const Input* running = nullptr;

void limit_memory() {
#ifndef TAMIS_SANITIZED  // Sanitizers need more address space than any limit.
  std::uint64_t num_pages = 0;
  std::ifstream("/proc/self/statm") >> num_pages;
  const rlim_t bytes = num_pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + kMemoryPerInput;
  const rlimit limit = {bytes, bytes};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) std::perror("setrlimit");
#endif
}

// Shows the input that failed, to be put into the corpus: printf '...' > tests/fuzz/corpus/NAME/...
void show_input(int signal) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "failed on: ";
  for (const std::uint8_t byte : *running) {
    text += {'\\', 'x', kHex[byte >> 4U], kHex[byte & 15U]};
  }
  text += '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(const Input& input) {
  running = &input;
  ::alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

std::vector<Input> read_corpus(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Input> inputs;
  for (const fs::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// Up to four bytes replaced, inserted, removed or taken from another input.
Input changed(Input input, const Input& other, std::mt19937_64& random) {
  const std::uint64_t count = 1 + random() % 4;
  for (std::uint64_t k = 0; k < count; ++k) {
    const std::size_t at = random() % (input.size() + 1);
    const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random() % 4) {
      case 0:
        input.insert(place, static_cast<std::uint8_t>(random()));
        break;
      case 1:
        if (place != input.end()) input.erase(place);
        break;
      case 2:
        if (place != input.end()) *place = static_cast<std::uint8_t>(random());
        break;
      default:
        const std::size_t from = random() % (other.size() + 1);
        input.insert(place, other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
    }
  }
  constexpr std::size_t kLongest = 4096;
  if (input.size() > kLongest) input.resize(kLongest);
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS [SECONDS [SEED]]\n", argv[0]);
    return 2;
  }
  const std::vector<Input> corpus = read_corpus(argv[1]);
  const std::chrono::seconds time(argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 0);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: holds no input\n", argv[1]);
    return 1;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGALRM}) std::signal(signal, show_input);
  limit_memory();
  for (const Input& input : corpus) run(input);
  std::mt19937_64 random(argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
  std::uint64_t num_changes = 0;
  const auto end = std::chrono::steady_clock::now() + time;
  for (; std::chrono::steady_clock::now() < end; ++num_changes) {
    const Input& other = corpus[random() % corpus.size()];
    run(changed(corpus[random() % corpus.size()], other, random));
  }
  std::printf("%zu inputs, %llu changes\n", corpus.size(),
              static_cast<unsigned long long>(num_changes));
  return 0;
}
