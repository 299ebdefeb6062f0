#include "tamis/libtorch/process_group.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/check.h"
#include "libtorch/collectives.h"
#include "libtorch/roll_call.h"

namespace tamis::libtorch {

namespace {

using tamis::detail::concat;

// Shares of the time limit: for a call to end, and to find out afterwards who is missing.
constexpr double kCallShare = 0.65;
constexpr double kRollCallShare = 0.25;

std::chrono::milliseconds share_of(std::chrono::milliseconds limit, double share) {
  return std::chrono::milliseconds(std::max<std::int64_t>(
      1, static_cast<std::int64_t>(share * static_cast<double>(limit.count()))));
}

std::string seconds(std::chrono::milliseconds time) {
  return concat(static_cast<double>(time.count()) / 1000.0, " s");
}

// The first line: torch adds the places in its sources.
std::string brief(const std::string& message) { return message.substr(0, message.find('\n')); }

bool is_local(const std::string& host) { return host == "localhost" || host.starts_with("127."); }

// A write to a rank that died must fail, not end this process without a word: c10d's sockets do not
// ask for that themselves. A handler that the program has set stays.
void survive_broken_pipes() {
  struct sigaction current {};
  if (::sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) {
    std::signal(SIGPIPE, SIG_IGN);
  }
}

// A socket that listens at an address of this machine's loopback. torch's own would listen at all
// addresses, also for a run whose ranks are all here.
int listen_locally(const std::string& address, std::uint16_t port) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  const bool listens =
      socket >= 0 && ::inet_pton(AF_INET, address.c_str(), &place.sin_addr) == 1 &&
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
      ::bind(socket, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0 &&
      ::listen(socket, SOMAXCONN) == 0;
  if (!listens) {
    const std::string reason = std::generic_category().message(errno);
    if (socket >= 0) ::close(socket);
    throw std::runtime_error(reason);
  }
  return socket;
}

c10::intrusive_ptr<c10d::Store> open_store(const ProcessGroupOptions& options) {
  c10d::TCPStoreOptions settings;
  // Not the name: it may mean another loopback address, ::1, as well.
  const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
  settings.port = options.port;
  settings.isServer = options.rank == 0 && !options.has_agent_store;
  settings.waitWorkers = false;
  settings.timeout = options.time_limit;
  c10::intrusive_ptr<c10d::Store> store;
  try {
    if (settings.isServer && is_local(host)) {
      settings.masterListenFd = listen_locally(host, options.port);
    }
    store = c10::make_intrusive<c10d::TCPStore>(host, settings);
  } catch (const std::exception& error) {
    throw std::runtime_error(concat(
        "rank ", options.rank, ": ",
        settings.isServer ? "cannot listen at " : "rank 0 did not answer at ", options.host, ":",
        options.port, " within ", seconds(options.time_limit), ": ", brief(error.what())));
  }
  return c10::make_intrusive<c10d::PrefixStore>("tamis/" + options.prefix, store);
}

std::shared_ptr<::gloo::transport::Device> make_device(const ProcessGroupOptions& options) {
  if (const char* const interface = std::getenv("GLOO_SOCKET_IFNAME")) {
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  }
  return is_local(options.host) ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                : c10d::ProcessGroupGloo::createDefaultDevice();
}

}  // namespace

struct ProcessGroup::Connection {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
};

ProcessGroup::ProcessGroup(const ProcessGroupOptions& options)
    : options_(options), connection_(std::make_unique<Connection>()) {
  tamis::detail::require(options.size >= 1, "ProcessGroup", "size", "at least 1", options.size);
  tamis::detail::require(options.rank < options.size, "ProcessGroup", "rank",
                         concat("below size (", options.size, ")"), options.rank);
  tamis::detail::require(options.time_limit.count() > 0, "ProcessGroup", "time_limit",
                         "more than 0 ms", options.time_limit.count());
  if (options.size == 1) return;
  survive_broken_pipes();
  connection_->store = open_store(options);
  const auto missing =
      call_roll(connection_->store, "join", options.rank, options.size, options.time_limit);
  if (!missing || !missing->empty()) {
    throw std::runtime_error(concat("rank ", options.rank, ": rank ",
                                    missing ? list_ranks(*missing) : "0", " of ", options.size,
                                    " did not come to ", options.host, ":", options.port,
                                    " within ", seconds(options.time_limit)));
  }
  auto settings = c10d::ProcessGroupGloo::Options::create(share_of(options.time_limit, kCallShare));
  settings->devices.push_back(make_device(options));
  settings->threads = 2;
  try {
    connection_->gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(
        connection_->store, static_cast<int>(options.rank), static_cast<int>(options.size),
        settings);
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

ProcessGroup::~ProcessGroup() = default;

void ProcessGroup::fail(const std::string& reason) {
  // Closes the connections, so that ranks that wait for this one learn of it at once.
  connection_->gloo.reset();
  const std::size_t me = options_.rank;
  const auto missing = call_roll(connection_->store, "failed", me, options_.size,
                                 share_of(options_.time_limit, kRollCallShare));
  connection_->store.reset();
  std::string who = "rank 0 (or the store that it runs)";
  if (missing) who = missing->empty() ? "" : "rank " + list_ranks(*missing);
  throw std::runtime_error(
      who.empty()
          ? concat("rank ", me, ": all ranks answer, but the exchange failed: ", brief(reason))
          : concat("rank ", me, ": ", who, " of ", options_.size, " has died or does not answer (",
                   brief(reason), ")"));
}

template <typename Start>
void ProcessGroup::run(const Start& start) {
  if (options_.size == 1) return;
  if (!connection_->gloo) {
    throw std::runtime_error(concat("rank ", options_.rank, ": the process group has failed"));
  }
  std::string reason;
  try {
    start(*connection_->gloo)->wait();  // at most Gloo's own time limit
    return;
  } catch (const std::exception& error) {
    reason = error.what();
  }
  fail(reason);
}

void ProcessGroup::sum(const at::Tensor& tensor) {
  std::vector<at::Tensor> tensors = {tensor};
  run([&](c10d::Backend& group) { return group.allreduce(tensors); });
}

void ProcessGroup::copy_from_first(const at::Tensor& tensor) {
  std::vector<at::Tensor> tensors = {tensor};
  run([&](c10d::Backend& group) { return group.broadcast(tensors); });
}

void ProcessGroup::reduce(std::span<std::int64_t> numbers, Reduction reduction) {
  libtorch::reduce(torch::kCPU, numbers, reduction, [this](const auto& start) { run(start); });
}

std::vector<std::vector<std::byte>> ProcessGroup::gather(std::span<const std::byte> bytes) {
  return libtorch::gather(torch::kCPU, size(), bytes, [this](const auto& start) { run(start); });
}

}  // namespace tamis::libtorch
