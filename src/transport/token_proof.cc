#include "transport/token_proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include "base/format.h"
#include "base/text.h"

namespace sluice::transport {
namespace {

void append(std::string& text, std::span<const std::byte> bytes) {
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());  // NOLINT: as characters
}

std::optional<TokenProof> hmac(std::string_view token, std::string_view text) {
  TokenProof proof{};
  unsigned int bytes = 0;
  // libcrypto takes a null key for "the key of the call before".
  const char* const key = token.empty() ? "" : token.data();
  const auto* const result =
      HMAC(EVP_sha256(), key, static_cast<int>(token.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),  // NOLINT: as bytes
           reinterpret_cast<unsigned char*>(proof.data()), &bytes);           // NOLINT: likewise
  if (result == nullptr || bytes != proof.size()) return std::nullopt;
  return proof;
}

std::string name_of(const std::array<std::byte, 32>& random) {
  constexpr std::size_t kBytes = 16;
  return base::to_hexadecimal(std::span{random}.first<kBytes>());
}

}  // namespace

Nonce new_nonce() {
  Nonce nonce{};
  // The system interrupts only requests for more than 256 bytes.
  while (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) continue;
  return nonce;
}

std::optional<TokenProof> prove(std::string_view token, Side side, const Transcript& transcript) {
  // The name ends with a zero and the challenge has a fixed length, so the parts cannot shift.
  std::string text{static_cast<char>(side)};
  text.append(transcript.handshake).push_back('\0');
  append(text, transcript.hello);
  append(text, transcript.challenge);
  return hmac(token, text);
}

bool is_proven(std::string_view token, Side side, const Transcript& transcript,
               const TokenProof& proof) {
  const std::optional<TokenProof> expected = prove(token, side, transcript);
  return expected && CRYPTO_memcmp(expected->data(), proof.data(), proof.size()) == 0;
}

std::string secret_name(std::string_view token, std::string_view text) {
  const std::optional<TokenProof> hash = hmac(token, base::format("name {}", text));
  return hash ? name_of(*hash) : "";
}

std::string random_name() { return name_of(new_nonce()); }

}  // namespace sluice::transport
