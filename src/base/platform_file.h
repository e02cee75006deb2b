// Files through the operating system.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace meganeura {

// Replaces `path` by a file of these bytes, or leaves it as it was: writes a new file beside it,
// flushes it to the disk and renames it. A symbolic link stays and its target is replaced.
// Error(kFile) naming the path and what the operating system said.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
// The same for the concatenation of `parts`.
void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts);

// The whole file. Error(kFile) naming the path and what the operating system said.
std::vector<std::byte> read_file(const std::filesystem::path& path);

// A file mapped for reading. The bytes live as long as the object; another program that shortens
// the file meanwhile can make an access fail, so map only files that are replaced, not rewritten.
class MappedFile {
 public:
  MappedFile() = default;
  // Error(kFile) naming the path and what the operating system said.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace meganeura
