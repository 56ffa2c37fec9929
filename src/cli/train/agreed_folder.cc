#include "cli/train/agreed_folder.h"

#include <array>
#include <cstring>
#include <ctime>

#include "cli/train/run_folder.h"

namespace sluice::cli {

std::filesystem::path agreed_run_folder(Communicator& communicator, const std::string& name) {
  constexpr std::size_t kLongest = 4096;  // of a path, as the system has it
  std::array<char, kLongest> text{};
  if (communicator.rank() == 0) {
    const auto folder = fresh_run_folder("", name, std::time(nullptr));
    const std::string told = folder.ok() ? folder.value().string() : folder.status().message();
    text[0] = folder.ok() ? '+' : '-';
    std::strncpy(text.data() + 1, told.c_str(), text.size() - 2);
  }
  communicator.broadcast(text.data(), text.size() / sizeof(std::int32_t), {.type = DataType::I32})
      .wait();
  if (text[0] != '+') throw Error{Status{Code::InvalidInput, text.data() + 1}};
  return text.data() + 1;
}

}  // namespace sluice::cli
