#include "base/build_id.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/text.h"

namespace sluice::base {
namespace {

// The id in a segment of notes: a sequence of headers, each followed by a name and a description,
// padded to 4 bytes.
std::string id_in(std::span<const std::byte> notes) {
  constexpr std::string_view kOwner{"GNU\0", 4};
  const auto padded = [](std::size_t bytes) { return (bytes + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof header);
    notes = notes.subspan(sizeof header);
    const std::size_t name = padded(header.n_namesz);
    if (notes.size() < name || notes.size() - name < header.n_descsz) break;
    const std::string_view owner{reinterpret_cast<const char*>(notes.data()), header.n_namesz};
    if (header.n_type == NT_GNU_BUILD_ID && owner == kOwner)
      return to_hexadecimal(notes.subspan(name, header.n_descsz));
    notes = notes.subspan(std::min(notes.size(), name + padded(header.n_descsz)));
  }
  return {};
}

int look_at(dl_phdr_info* module, std::size_t /*size*/, void* found) {
  const auto address = [&](const ElfW(Phdr) & segment) {
    return module->dlpi_addr + segment.p_vaddr;
  };
  const auto here = reinterpret_cast<std::uintptr_t>(&build_id);
  const std::span segments{module->dlpi_phdr, module->dlpi_phnum};
  const bool has_this_code = std::any_of(segments.begin(), segments.end(), [&](const auto& each) {
    return each.p_type == PT_LOAD && here >= address(each) && here - address(each) < each.p_memsz;
  });
  if (!has_this_code) return 0;
  auto& id = *static_cast<std::string*>(found);
  for (const auto& each : segments) {
    if (each.p_type != PT_NOTE || !id.empty()) continue;
    id = id_in({reinterpret_cast<const std::byte*>(address(each)), each.p_memsz});  // NOLINT
  }
  return 1;
}

}  // namespace

std::string build_id() {
  std::string id;
  dl_iterate_phdr(look_at, &id);
  return id;
}

}  // namespace sluice::base
