// Where a run took place: versions, processor, date.
#include <torch/version.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include "training/source_commit.h"
#include "training/trainer/run_config.h"

namespace tamis::training {

namespace {

// The processor's name as Linux gives it; empty where there is none.
std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::string text(sizeof "2000-01-01T00:00:00Z", '\0');
  text.resize(std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts));
  return text;
}

}  // namespace

Json describe_environment() {
  const std::string commit = TAMIS_COMMIT;
  return {{"tamis", TAMIS_VERSION}, {"torch", TORCH_VERSION},
          {"cpu", cpu_name()},      {"cores", std::thread::hardware_concurrency()},
          {"date", utc_now()},      {"commit", commit.empty() ? Json(nullptr) : Json(commit)}};
}

}  // namespace tamis::training
