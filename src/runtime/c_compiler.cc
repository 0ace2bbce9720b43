// The compiler is a child process: its fatal errors and endless loops do not reach this process.
//
//   text -> /tmp/tokamak-XXXXXX/kernel.c -> cc -> kernel.so -> disk cache
//                                                 dlopen, then the folder is removed

#include "runtime/c_compiler.h"

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <mutex>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#include "runtime/disk_cache.h"
#include "runtime/process.h"

extern char** environ;

namespace tokamak {
namespace {

using Clock = std::chrono::steady_clock;

// No contraction and no relaxed floating-point rules: kernels compute what they say.
constexpr std::array kOptions = {"-O3",
                                 "-fPIC",
                                 "-shared",
                                 "-ffp-contract=off",
                                 "-fno-math-errno",
#if defined(__aarch64__)
                                 "-mcpu=native",
#else
                                 "-march=native",
#endif
                                 "-fno-trapping-math",
                                 "-fno-strict-aliasing",
                                 "-Wl,-z,defs",
                                 "-Wall",
                                 "-Wno-unused"};
// Between two looks at the compiler. Chosen: a hundredth of its time for a small kernel.
constexpr std::chrono::microseconds kPollTime{500};
// Bytes of a compiler's message that are shown. Chosen: the first errors matter.
constexpr size_t kMostOfMessage = 8 << 10;

// A folder that is removed with its files.
class ScratchFolder {
 public:
  ScratchFolder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base == nullptr || *base == 0 ? "/tmp" : base) + "/tokamak-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~ScratchFolder() {
    if (path_.empty()) return;
    for (const std::string& file : files_) unlink(file.c_str());
    rmdir(path_.c_str());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  bool ok() const { return !path_.empty(); }
  std::string File(const std::string& name) {
    files_.push_back(path_ + "/" + name);
    return files_.back();
  }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

bool WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return static_cast<bool>(file.flush());
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

enum class Ended : uint8_t { kFine, kFailed, kMissing, kTooLong };

// Runs a command with its output in a file. Kills it, and what it started, after `time`.
Ended RunCommand(const std::vector<std::string>& command, const std::string& output,
                 std::chrono::milliseconds time) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  // Messages in English and ASCII.
  std::string language = "LC_ALL=C";
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with("LC_ALL=")) environment.push_back(*entry);
  environment.push_back(language.data());
  environment.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawnattr_t own_group;
  posix_spawnattr_init(&own_group);
  posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  int failure =
      posix_spawnp(&child, arguments[0], &files, &own_group, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&own_group);
  if (failure != 0) return Ended::kMissing;
  int status = 0;
  Clock::time_point end = Clock::now() + time;
  for (;;) {
    pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child) break;
    if (done < 0) return Ended::kFailed;  // someone else waits for all children of the process
    if (Clock::now() > end) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      return Ended::kTooLong;
    }
    std::this_thread::sleep_for(kPollTime);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return Ended::kMissing;  // of a shell
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? Ended::kFine : Ended::kFailed;
}

std::vector<std::string> CompilersFor(bool is_cpp) {
  const char* named = std::getenv(is_cpp ? "TOKAMAK_CXX" : "TOKAMAK_CC");
  if (named != nullptr && *named != 0) return {named};
  if (is_cpp) return {"c++", "g++", "clang++"};
  return {"cc", "gcc", "clang"};
}

Error NoCompiler(const CSource& source) {
  const char* variable = source.is_cpp ? "TOKAMAK_CXX" : "TOKAMAK_CC";
  const char* named = std::getenv(variable);
  std::string tried = named != nullptr && *named != 0 ? std::string(variable) + "=" + named
                                                      : "neither c++, g++ nor clang++ is";
  if (!source.is_cpp && (named == nullptr || *named == 0)) tried = "neither cc, gcc nor clang is";
  Error error = MakeError(ErrorCode::kCustomKernelCompiler,
                          "kernel '" + source.name + "': there is no " +
                              (source.is_cpp ? "C++" : "C") + " compiler: " + tried +
                              (named != nullptr && *named != 0 ? " does not run" : " installed"));
  error.notes.push_back(source.is_cpp ? "install one: apt-get install g++"
                                      : "install one: apt-get install gcc");
  return error;
}

Error Rejected(const CSource& source, const std::string& message) {
  Error error = MakeError(ErrorCode::kCustomKernelSource,
                          "kernel '" + source.name + "': its source does not compile");
  std::string note = message.substr(0, kMostOfMessage);
  while (!note.empty() && note.back() == '\n') note.pop_back();
  error.notes.push_back(note.empty() ? "the compiler printed nothing" : note);
  return error;
}

Error Failed(const CSource& source, const std::string& why) {
  return MakeError(ErrorCode::kCustomKernelCompiler, "kernel '" + source.name + "': " + why);
}

Result<std::string> Compile(const CSource& source, std::chrono::milliseconds time) {
  ScratchFolder folder;
  if (!folder.ok()) return Failed(source, "no folder for its source can be created in TMPDIR");
  std::string text = folder.File(source.is_cpp ? "kernel.cc" : "kernel.c");
  std::string library = folder.File("kernel.so"), output = folder.File("messages");
  if (!WriteFile(text, source.text)) return Failed(source, "its source cannot be written");
  for (const std::string& compiler : CompilersFor(source.is_cpp)) {
    std::vector<std::string> command = {compiler};
    command.insert(command.end(), kOptions.begin(), kOptions.end());
    command.push_back(source.is_cpp ? "-std=c++17" : "-std=gnu11");
    command.insert(command.end(), source.options.begin(), source.options.end());
    command.insert(command.end(), {"-o", library, text, "-lm"});
    Ended ended = RunCommand(command, output, time);
    if (ended == Ended::kMissing) continue;
    if (ended == Ended::kTooLong)
      return Failed(source,
                    compiler + " was stopped after " + std::to_string(time.count()) + " ms");
    if (ended == Ended::kFailed) return Rejected(source, ReadFile(output));
    return ReadFile(library);
  }
  return NoCompiler(source);
}

Result<std::shared_ptr<const SharedCode>> LoadCode(const CSource& source,
                                                   const std::string& bytes) {
  ScratchFolder folder;
  std::string path = folder.ok() ? folder.File("kernel.so") : "";
  if (!folder.ok() || !WriteFile(path, bytes))
    return Failed(source, "its code cannot be written to TMPDIR");
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return Failed(source, std::string("its code cannot be loaded: ") + (why ? why : "unknown"));
  }
  return std::make_shared<const SharedCode>(handle);
}

// The processor, for whose instructions the code is compiled.
std::string ProcessorText() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, text;
  while (std::getline(file, line) && !line.empty())
    if (line.starts_with("model name") || line.starts_with("flags") ||
        line.starts_with("Features") || line.starts_with("CPU part"))
      text += line;
  return text;
}

std::string KeyOf(const CSource& source) {
  static const std::string processor = ProcessorText();
  CacheKey key;
  key.Add(BuildId()).Add(source.text).Add(source.is_cpp ? "c++" : "c").Add(processor);
  for (const char* option : kOptions) key.Add(option);
  for (const std::string& option : source.options) key.Add(option);
  for (const std::string& compiler : CompilersFor(source.is_cpp)) key.Add(compiler);
  return key.Digest();
}

}  // namespace

SharedCode::~SharedCode() {
  dlclose(handle_);
}

void* SharedCode::Find(const char* name) const {
  return dlsym(handle_, name);
}

Result<std::shared_ptr<const SharedCode>> CompileC(const CSource& source,
                                                   std::chrono::milliseconds time) {
  static auto* mutex = new std::mutex;
  static auto* loaded = new std::unordered_map<std::string, std::shared_ptr<const SharedCode>>;
  std::string key = KeyOf(source);
  std::lock_guard<std::mutex> lock(*mutex);
  if (auto known = loaded->find(key); known != loaded->end()) return known->second;
  DiskCache* cache = DiskCache::OfProcess();
  std::optional<std::string> bytes = cache == nullptr ? std::nullopt : cache->Get("custom-c", key);
  if (!bytes) {
    TOK_TRY(bytes, Compile(source, time));
    if (cache != nullptr) cache->Put("custom-c", key, *bytes);
  }
  TOK_TRY(std::shared_ptr<const SharedCode> code, LoadCode(source, *bytes));
  (*loaded)[key] = code;
  return code;
}

}  // namespace tokamak
