// Several copies of a program, started as a launcher would: RANK, WORLD_SIZE, MASTER_ADDR/PORT.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tamis::test {

// A port that nobody listens at now. Not one that the system hands out by itself (from 32768 on):
// another process might get it before the team is there.
inline int free_port() {
  std::random_device random;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto port = static_cast<std::uint16_t>(12'000 + random() % 20'000);
    const int file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const bool is_free =
        ::bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(file);
    if (is_free) return port;
  }
  throw std::runtime_error("no free port");
}

class ProcessTeam {
 public:
  // The arguments begin with the program. What rank R prints goes to output + R, if given.
  ProcessTeam(std::size_t size, const std::vector<std::string>& arguments,
              const std::string& output = "") {
    const std::string port = std::to_string(free_port());
    for (std::size_t rank = 0; rank < size; ++rank) {
      const pid_t child = ::fork();
      if (child == 0) run(rank, size, port, arguments, output);
      children_.push_back(child);
    }
  }
  ProcessTeam(const ProcessTeam&) = delete;
  ProcessTeam& operator=(const ProcessTeam&) = delete;
  ~ProcessTeam() {
    for (const pid_t child : children_) {
      if (child <= 0) continue;
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }

  void kill(std::size_t rank, int signal) const { ::kill(children_.at(rank), signal); }

  // Exit code of a rank, or minus the signal that ended it; throws if it does not end in time.
  int wait(std::size_t rank, std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    pid_t& child = children_.at(rank);
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) {
        throw std::runtime_error("rank " + std::to_string(rank) + " does not end");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    child = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  [[noreturn]] static void run(std::size_t rank, std::size_t size, const std::string& port,
                               const std::vector<std::string>& arguments,
                               const std::string& output) {
    if (!output.empty()) {
      const int file =
          ::open((output + std::to_string(rank)).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(file, STDOUT_FILENO);
      ::dup2(file, STDERR_FILENO);
    }
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
    ::setenv("MASTER_ADDR", "127.0.0.1", 1);
    ::setenv("MASTER_PORT", port.c_str(), 1);
    ::setenv("OMP_NUM_THREADS", "1", 1);
    std::vector<char*> argv;
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }

  std::vector<pid_t> children_;
};

}  // namespace tamis::test
