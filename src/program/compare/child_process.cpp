#include "program/compare/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/files/posix_io.h"

namespace tamis::program {

namespace {

int open_log(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) detail::throw_io_error(path, "open", errno);
  return file;
}

// In the child, after fork(): only calls that are safe there.
[[noreturn]] void become(char* const* argv, int in, int out, int err) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_DFL);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::execv(argv[0], argv);
  ::_exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const std::string& command, const std::vector<std::string>& arguments,
                           const std::filesystem::path& out, const std::filesystem::path& err) {
  const detail::Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const detail::Descriptor out_file(open_log(out));
  const detail::Descriptor err_file(open_log(err));
  std::vector<std::string> words = {"/bin/sh", "-c", command + " \"$@\"", "sh"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  process_ = ::fork();
  if (process_ < 0) detail::throw_io_error(command, "start", errno);
  if (process_ == 0) become(argv.data(), null.get(), out_file.get(), err_file.get());
  // In both processes, so that it holds whoever comes first.
  ::setpgid(process_, process_);
}

ChildProcess::~ChildProcess() {
  if (has_ended_) return;
  send(SIGKILL);
  detail::retry_interrupted([&] { return ::waitpid(process_, &status_, 0); });
}

bool ChildProcess::has_ended() {
  if (!has_ended_) {
    has_ended_ = detail::retry_interrupted(
                     [&] { return ::waitpid(process_, &status_, WNOHANG); }) == process_;
  }
  return has_ended_;
}

void ChildProcess::send(int signal) const { ::kill(-process_, signal); }

int ChildProcess::exit_code() const {
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

}  // namespace tamis::program
