// The pipeline cache on disk.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace meganeura::device::vulkan {

// The data that save_cache_file stored under the same key, or nothing when the file is absent,
// damaged or of another device or driver: drivers are not trusted to refuse bad data themselves.
std::vector<std::byte> load_cache_file(const std::filesystem::path& path, std::string_view key);

// Replaces the file in one step, creating its directory; false when the system refuses. A cache
// that cannot be written is no error.
bool save_cache_file(const std::filesystem::path& path, std::string_view key,
                     std::span<const std::byte> data);

}  // namespace meganeura::device::vulkan
