#include "base/platform_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace meganeura {
namespace {

constexpr mode_t kNewFileMode = 0666;
constexpr int kNameAttempts = 1000;
constexpr size_t kReadBlock = size_t{1} << 18;

[[noreturn]] void fail_file(std::string_view what, const std::filesystem::path& path, int error) {
  fail(ErrorKind::kFile, "The file \"", path.string(), "\" could not be ", what, ": ",
       std::generic_category().message(error), ".");
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  int number() const { return number_; }
  // 0 or the error; the write may be reported only here.
  int close() {
    const int number = std::exchange(number_, -1);
    return ::close(number) == 0 || errno == EINTR ? 0 : errno;
  }

 private:
  int number_;
};

int open_retrying(const std::filesystem::path& path, int flags, mode_t mode = 0) {
  for (;;) {
    const int number = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    if (number >= 0 || errno != EINTR) return number;
  }
}

// 0 or the error.
int write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return 0;
}

int flush(int descriptor) {
  while (::fsync(descriptor) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// A new file beside `target`, removed again unless it took the place of `target`.
class Replacement {
 public:
  explicit Replacement(const std::filesystem::path& target) : target_(target) {
    for (int attempt = 0; attempt < kNameAttempts; ++attempt) {
      path_ = target;
      path_ += cat(".", ::getpid(), ".", attempt, ".tmp");
      descriptor_ = open_retrying(path_, O_WRONLY | O_CREAT | O_EXCL, kNewFileMode);
      if (descriptor_ >= 0) return;
      if (errno != EEXIST) break;
    }
    fail_file("created", path_, errno);
  }
  ~Replacement() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!renamed_) ::unlink(path_.c_str());
  }
  Replacement(const Replacement&) = delete;

  void write(std::span<const std::byte> bytes) {
    if (const int error = write_all(descriptor_, bytes)) fail_file("written", target_, error);
  }

  void commit() {
    struct stat old {};
    if (::stat(target_.c_str(), &old) == 0 && S_ISREG(old.st_mode) &&
        ::fchmod(descriptor_, old.st_mode & 0777) != 0) {
      fail_file("given its permissions", target_, errno);
    }
    if (const int error = flush(descriptor_)) fail_file("written", target_, error);
    Descriptor closing(std::exchange(descriptor_, -1));
    if (const int error = closing.close()) fail_file("written", target_, error);
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail_file("replaced", target_, errno);
    renamed_ = true;
    flush_directory();
  }

 private:
  // Some file systems cannot flush a directory; the rename is then as durable as they make it.
  void flush_directory() {
    const std::filesystem::path parent = target_.parent_path();
    const Descriptor directory(
        open_retrying(parent.empty() ? "." : parent, O_RDONLY | O_DIRECTORY));
    if (directory.number() < 0) return;
    const int error = flush(directory.number());
    if (error != 0 && error != EINVAL && error != EROFS && error != ENOTSUP) {
      fail_file("flushed", target_, error);
    }
  }

  std::filesystem::path target_;
  std::filesystem::path path_;
  int descriptor_ = -1;
  bool renamed_ = false;
};

std::filesystem::path behind_links(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
  if (error) fail_file("resolved", path, error.value());
  return target;
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts) {
  Replacement replacement(behind_links(path));
  for (const std::span<const std::byte> part : parts) replacement.write(part);
  replacement.commit();
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  write_file_atomically(path, std::array{bytes});
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  const Descriptor file(open_retrying(path, O_RDONLY));
  if (file.number() < 0) fail_file("opened", path, errno);
  std::vector<std::byte> bytes;
  struct stat status {};
  if (::fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode)) {
    bytes.reserve(static_cast<size_t>(status.st_size) + 1);
  }
  for (;;) {
    const size_t size = bytes.size();
    bytes.resize(std::max(bytes.capacity(), size + kReadBlock));
    const ssize_t count = ::read(file.number(), bytes.data() + size, bytes.size() - size);
    const int error = errno;
    bytes.resize(size + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return bytes;
    if (count < 0 && error != EINTR) fail_file("read", path, error);
  }
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor file(open_retrying(path, O_RDONLY));
  if (file.number() < 0) fail_file("opened", path, errno);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail_file("inspected", path, errno);
  if (!S_ISREG(status.st_mode))
    fail_file("mapped", path, S_ISDIR(status.st_mode) ? EISDIR : EINVAL);
  if (status.st_size == 0) return;
  const auto size = static_cast<size_t>(status.st_size);
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (start == MAP_FAILED) fail_file("mapped", path, errno);
  bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace meganeura
