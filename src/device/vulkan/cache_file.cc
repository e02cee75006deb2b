#include "device/vulkan/cache_file.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>

#include "base/format.h"

namespace meganeura::device::vulkan {
namespace {

constexpr std::array<char, 8> kMagic = {'M', 'G', 'V', 'K', 'P', 'C', '0', '1'};
constexpr uint64_t kMaxBytes = 1ull << 30;

struct Header {
  std::array<char, 8> magic = kMagic;
  uint64_t key_hash = 0;
  uint64_t data_bytes = 0;
  uint64_t data_hash = 0;
};

uint64_t fnv1a(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (std::byte byte : bytes) {
    hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3ull;
  }
  return hash;
}

uint64_t fnv1a(std::string_view text) { return fnv1a(std::as_bytes(std::span(text))); }

}  // namespace

std::vector<std::byte> load_cache_file(const std::filesystem::path& path, std::string_view key) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error || size < sizeof(Header) || size > kMaxBytes) return {};
  std::ifstream file(path, std::ios::binary);
  Header header;
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header))) return {};
  if (header.magic != kMagic || header.key_hash != fnv1a(key) ||
      header.data_bytes != size - sizeof(Header)) {
    return {};
  }
  std::vector<std::byte> data(header.data_bytes);
  if (!file.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()))) {
    return {};
  }
  if (fnv1a(data) != header.data_hash) return {};
  return data;
}

bool save_cache_file(const std::filesystem::path& path, std::string_view key,
                     std::span<const std::byte> data) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  std::filesystem::path temporary = path;
  temporary += cat(".", std::chrono::steady_clock::now().time_since_epoch().count(), ".tmp");
  Header header;
  header.key_hash = fnv1a(key);
  header.data_bytes = data.size();
  header.data_hash = fnv1a(data);
  bool written = false;
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
    file.write(reinterpret_cast<const char*>(data.data()),
               static_cast<std::streamsize>(data.size()));
    file.close();
    written = file.good();
  }
  if (written) std::filesystem::rename(temporary, path, error);
  if (!written || error) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    return false;
  }
  return true;
}

}  // namespace meganeura::device::vulkan
