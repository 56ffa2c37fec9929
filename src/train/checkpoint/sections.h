// sections.h - writes values as named arrays of a checkpoint, and reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/format.h"
#include "sluice/status.h"
#include "sluice/types.h"
#include "train/checkpoint/checkpoint_file.h"

namespace sluice::train {

// The type of a value in the file; none: bytes. Unsigned integers are stored as signed ones.
template <class T>
constexpr std::optional<DataType> stored_as() {
  if constexpr (std::is_same_v<T, float>) return DataType::F32;
  if constexpr (std::is_same_v<T, double>) return DataType::F64;
  if constexpr (std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::uint32_t>)
    return DataType::I32;
  if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t>)
    return DataType::I64;
  static_assert(sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8);
  return std::nullopt;
}

class SectionWriter {
 public:
  void clear() {
    sections_.clear();
    copies_.clear();
  }
  std::span<const Section> sections() const { return sections_; }

  void add(Section section) { sections_.push_back(std::move(section)); }
  // `values` must not change until the sections have been written.
  template <class T>
  void add_view(std::string name, std::span<const T> values) {
    sections_.push_back({.name = std::move(name),
                         .type = stored_as<T>(),
                         .shape = {static_cast<std::int64_t>(values.size())},
                         .data = std::as_bytes(values)});
  }
  template <class T>
  void add_copy(std::string name, std::span<const T> values) {
    const auto bytes = std::as_bytes(values);
    copies_.emplace_back(bytes.begin(), bytes.end());
    add_view(std::move(name),
             std::span{reinterpret_cast<const T*>(copies_.back().data()), values.size()});
  }
  template <class T>
  void add_value(std::string name, T value) {
    add_copy(std::move(name), std::span<const T>{&value, 1});
  }
  void add_text(std::string name, std::string_view text) {
    add_copy(std::move(name), std::span<const char>{text.data(), text.size()});
  }

 private:
  std::vector<Section> sections_;
  std::deque<std::vector<std::byte>> copies_;
};

// Reads the arrays of a part. status() names the first array that is not as expected; such an array
// is read as empty, such a value as zero.
class SectionReader {
 public:
  explicit SectionReader(const CheckpointPart& part) : part_{&part} {}

  const Status& status() const { return status_; }
  bool has(std::string_view name) const { return part_->find(name) != nullptr; }

  template <class T>
  std::span<const T> values(std::string_view name) {
    const Section* const section = part_->find(name);
    if (section == nullptr) return refuse<T>(name, "is missing");
    if (section->type != stored_as<T>()) return refuse<T>(name, "is of another type");
    return {reinterpret_cast<const T*>(section->data.data()), section->data.size() / sizeof(T)};
  }
  template <class T>
  std::vector<T> vector(std::string_view name) {
    const std::span<const T> all = values<T>(name);
    return {all.begin(), all.end()};
  }
  template <class T>
  T value(std::string_view name) {
    const std::span<const T> all = values<T>(name);
    if (all.size() == 1) return all[0];
    refuse<T>(name, "is not one value");
    return T{};
  }
  std::string_view text(std::string_view name) {
    const std::span<const char> all = values<char>(name);
    return {all.data(), all.size()};
  }

 private:
  template <class T>
  std::span<const T> refuse(std::string_view name, std::string_view why) {
    if (status_.ok())
      status_ = {Code::InvalidInput, base::format("the checkpoint's array '{}' {}", name, why)};
    return {};
  }

  const CheckpointPart* part_;
  Status status_;
};

}  // namespace sluice::train
