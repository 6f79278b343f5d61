// fork, pin, exec, read: see child_process.h.
#include "tests/bench/child_process.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

namespace reflex::bench {

namespace {

/// The last `count` CPUs that this process may use (the first ones get the interrupts).
void pin_to_cpus(unsigned count) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  unsigned taken = 0;
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && taken < count; --cpu) {
    if (CPU_ISSET(cpu, &allowed)) {
      CPU_SET(cpu, &chosen);
      ++taken;
    }
  }
  // Best effort: without the right to pin, the figures are only noisier.
  (void)sched_setaffinity(0, sizeof chosen, &chosen);
}

[[noreturn]] void exec_child(const std::vector<std::string>& command, unsigned cpu_count, int out) {
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  pin_to_cpus(cpu_count);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  std::perror(arguments[0]);
  _exit(127);
}

}  // namespace

Result<Pairs> run_child(const std::vector<std::string>& command, unsigned cpu_count) {
  int ends[2];
  if (pipe(ends) != 0) return Error{"pipe failed", 3};
  const pid_t pid = fork();
  if (pid < 0) return Error{"fork failed", 3};
  if (pid == 0) exec_child(command, cpu_count, ends[1]);
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n = read(ends[0], buffer, sizeof buffer); n > 0;
       n = read(ends[0], buffer, sizeof buffer)) {
    text.append(buffer, static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Error{command[0] + " failed: " + text, 3};
  }
  Pairs pairs;
  std::istringstream words(text);
  std::string name;
  std::string value;
  while (words >> name >> value) pairs[name] = value;
  return pairs;
}

double number(const Pairs& pairs, const std::string& name) {
  const auto found = pairs.find(name);
  return found == pairs.end() ? std::nan("") : std::strtod(found->second.c_str(), nullptr);
}

}  // namespace reflex::bench
