#include <zlib.h>

#include <memory>

#include "base/format.h"
#include "data/formats/file_bytes.h"

namespace sluice::data {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20U;
constexpr int kGzipOnly = 16 + MAX_WBITS;

Status inflate_all(std::vector<std::uint8_t>& packed, std::vector<std::uint8_t>& bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) return {Code::NoMemory, "needs memory for zlib"};
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end{&stream, inflateEnd};
  stream.next_in = packed.data();
  stream.avail_in = static_cast<uInt>(packed.size());
  std::size_t done = 0;
  for (int result = Z_OK; result != Z_STREAM_END;) {
    bytes.resize(done + kPiece);
    stream.next_out = bytes.data() + done;
    stream.avail_out = static_cast<uInt>(kPiece);
    result = inflate(&stream, Z_NO_FLUSH);
    done += kPiece - stream.avail_out;
    if (result == Z_BUF_ERROR || (result == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)) {
      return {Code::InvalidInput,
              base::format("is a gzip file that ends early, {} bytes in", packed.size())};
    }
    if (result != Z_OK && result != Z_STREAM_END) {
      return {Code::InvalidInput,
              base::format("is a broken gzip file: {}, {} bytes in",
                           stream.msg == nullptr ? "no reason given" : stream.msg,
                           packed.size() - stream.avail_in)};
    }
  }
  bytes.resize(done);
  return {};
}

}  // namespace

Status gunzip(std::vector<std::uint8_t>& bytes) {
  if (bytes.size() > std::size_t{1} << 31U) {
    return {Code::InvalidInput, "is larger than 2 GiB: unpack it first"};
  }
  std::vector<std::uint8_t> packed;
  packed.swap(bytes);
  return inflate_all(packed, bytes);
}

}  // namespace sluice::data
