#include "text/load.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/infer.h"
#include "support/near_names.h"
#include "text/read.h"

namespace tokamak {
namespace {

Error FileError(ErrorCode code, const std::string& path, const char* verb) {
  std::string reason = std::strerror(errno);
  return MakeError(code, "cannot " + std::string(verb) + " '" + path + "': " + reason,
                   {.file = path});
}

// The error of a file that cannot be opened, with the name of a similar file.
Error CannotOpen(const std::string& path) {
  bool missing = errno == ENOENT;
  Error error = FileError(ErrorCode::kFileUnreadable, path, "open");
  if (!missing) return error;
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code code;
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator at(folder.empty() ? "." : folder, code), end;
       !code && at != end; at.increment(code))
    files.push_back(at->path().filename().string());
  std::sort(files.begin(), files.end());
  error.message +=
      DidYouMean(std::filesystem::path(path).filename().string(), {files.begin(), files.end()});
  return error;
}

Error CannotWrite(const std::string& path) {
  bool missing = errno == ENOENT;
  Error error = FileError(ErrorCode::kFileUnwritable, path, "write");
  if (missing)
    error.notes.push_back("create the folder " +
                          std::filesystem::path(path).parent_path().string() + " first");
  return error;
}

// A memory mapping that is unmapped with its last user.
class Mapping {
 public:
  Mapping(void* data, size_t size) : data_(data), size_(size) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(data_, size_); }

 private:
  void* data_;
  size_t size_;
};

Result<Bytes> ReadStream(int fd, const std::string& path) {
  std::string data;
  char block[1 << 16];
  for (;;) {
    ssize_t got = read(fd, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(ErrorCode::kFileUnreadable, path, "read");
    if (got == 0) return Bytes::FromString(std::move(data));
    data.append(block, static_cast<size_t>(got));
  }
}

Result<Bytes> ReadDescriptor(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return FileError(ErrorCode::kFileUnreadable, path, "read");
  if (!S_ISREG(info.st_mode)) return ReadStream(fd, path);
  auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return Bytes();
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return ReadStream(fd, path);
  return Bytes(std::make_shared<Mapping>(data, size), static_cast<const std::byte*>(data), size);
}

bool WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    ssize_t put = write(fd, data.data(), data.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    data.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

std::string_view FormatName(std::string_view bytes) {
  Result<Format> format = RecogniseFormat(bytes);
  if (!format.ok()) return "";
  switch (format.value()) {
    case Format::kMlirText:
      return "StableHLO text";
    case Format::kMlirBytecode:
      return "MLIR bytecode";
    case Format::kHloText:
      return "HLO text";
  }
  return "";
}

}  // namespace

Result<Bytes> ReadFileBytes(const std::string& path) {
  if (path == "-") return ReadStream(STDIN_FILENO, path);
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return CannotOpen(path);
  Result<Bytes> bytes = ReadDescriptor(fd, path);
  close(fd);
  return bytes;
}

Status WriteFileBytes(const std::string& path, std::string_view data) {
  if (path == "-") {
    if (std::fwrite(data.data(), 1, data.size(), stdout) != data.size())
      return FileError(ErrorCode::kFileUnwritable, path, "write");
    return Ok();
  }
  struct stat info {};
  bool in_place = stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);  // /dev/null, a pipe
  std::string target = in_place ? path : path + ".part" + std::to_string(getpid());
  int fd = open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return CannotWrite(path);
  bool written = WriteAll(fd, data);
  written = close(fd) == 0 && written;
  if (written && (in_place || std::rename(target.c_str(), path.c_str()) == 0)) return Ok();
  Error error = FileError(ErrorCode::kFileUnwritable, path, "write");
  if (!in_place) unlink(target.c_str());
  return error;
}

Status CheckWritable(const std::string& path) {
  struct stat info {};
  bool exists = stat(path.c_str(), &info) == 0;
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return CannotWrite(path);
  close(fd);
  if (!exists) unlink(path.c_str());
  return Ok();
}

std::string_view LoadedFile::source() const {
  return format == "MLIR bytecode" ? std::string_view() : bytes.text();
}

LoadedFile LoadBytes(const Bytes& bytes, const std::string& path, Verification verification) {
  LoadedFile file{path, bytes, FormatName(bytes.text()), ReadModules(bytes, path)};
  if (verification == Verification::kNo) return file;
  for (auto& program : file.programs) {
    if (!program.ok()) continue;
    Status status = VerifyModule(*program.value());
    if (!status.ok()) program = std::move(status.error());
  }
  return file;
}

Result<LoadedFile> LoadFile(const std::string& path, Verification verification) {
  TOK_TRY(Bytes bytes, ReadFileBytes(path));
  return LoadBytes(bytes, path, verification);
}

}  // namespace tokamak
