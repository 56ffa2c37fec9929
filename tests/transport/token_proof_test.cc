#include "transport/token_proof.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/format.h"

namespace sluice::transport {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text});
}

std::string hex(const TokenProof& proof) {
  std::string text;
  for (const std::byte each : proof) text += base::format("{:02x}", std::to_integer<int>(each));
  return text;
}

// The challenge of bytes 1, 2, 3, ...
Nonce counting() {
  Nonce nonce{};
  for (std::size_t i = 0; i < nonce.size(); ++i) nonce[i] = static_cast<std::byte>(i + 1);
  return nonce;
}

const Nonce kChallenge = counting();
const Transcript kTranscript{"tcp", bytes_of("hello"), kChallenge};

// By Python: hmac.new(b'secret', b'ctcp\\0hello' + bytes(range(1, 33)), 'sha256').hexdigest()
TEST(TokenProof, IsHmacSha256OfTheSideTheHandshakeTheHelloAndTheChallenge) {
  EXPECT_EQ(hex(prove("secret", Side::Client, kTranscript).value()),
            "0d0eff422aba322adfbaf86eb2378203a920f45e324624b8b0e3f7c33bdd8a45");
  EXPECT_EQ(hex(prove("secret", Side::Server, kTranscript).value()),
            "6231ec50896bb27f13012154509c1bd507d112fc8702566ec9847c9232b3be8a");
  EXPECT_EQ(hex(prove("", Side::Client, kTranscript).value()),
            "d4480274fa0d7b909a334660b145cf4c3868261f5cc5efc013843c4da9234cda");
}

TEST(TokenProof, OnlyTheSameTokenSideAndTranscriptFit) {
  const TokenProof proof = prove("secret", Side::Client, kTranscript).value();
  EXPECT_TRUE(is_proven("secret", Side::Client, kTranscript, proof));
  EXPECT_FALSE(is_proven("secret", Side::Server, kTranscript, proof)) << "sent back to its maker";
  for (const char* token : {"secreT", "secre", "secretsecret", ""})
    EXPECT_FALSE(is_proven(token, Side::Client, kTranscript, proof)) << token;
  Nonce other = kChallenge;
  other[31] ^= std::byte{1};
  EXPECT_FALSE(is_proven("secret", Side::Client, {"tcp", bytes_of("hello"), other}, proof));
  EXPECT_FALSE(is_proven("secret", Side::Client, {"tcp", bytes_of("hellO"), kChallenge}, proof));
  EXPECT_FALSE(is_proven("secret", Side::Client, {"mesh", bytes_of("hello"), kChallenge}, proof));
  const std::string_view moved{"\0hello", 6};
  EXPECT_FALSE(is_proven("secret", Side::Client, {"tcp", bytes_of(moved), kChallenge}, proof));
  TokenProof damaged = proof;
  damaged[0] ^= std::byte{0x80};
  EXPECT_FALSE(is_proven("secret", Side::Client, kTranscript, damaged));
  EXPECT_FALSE(is_proven("secret", Side::Client, kTranscript, TokenProof{}));
}

TEST(TokenProof, NoncesDiffer) {
  std::set<Nonce> seen;
  for (int i = 0; i < 100; ++i) seen.insert(new_nonce());
  EXPECT_EQ(seen.size(), 100U);
}

TEST(SecretName, DependsOnTheTokenAndTheText) {
  const std::string name = secret_name("secret", "rank 0");
  EXPECT_EQ(name.size(), 32U);
  EXPECT_EQ(name, secret_name("secret", "rank 0"));
  EXPECT_NE(name, secret_name("secret", "rank 1"));
  EXPECT_NE(name, secret_name("guessed", "rank 0"));
}

}  // namespace
}  // namespace sluice::transport
