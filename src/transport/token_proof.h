// token_proof.h - how two processes prove to each other that they know the job's token.
//
// The token itself is never sent. The client is the process that connects:
//
//   client to server   hello: which rank it is, which rank it wants, and a nonce
//   server to client   challenge: another nonce
//   client to server   the client's proof
//   server to client   the server's proof
//
// A proof is HMAC-SHA-256, by libcrypto, with the token as its key. It covers the side that makes
// it, the name of the handshake, the whole hello and the challenge. So a proof that was recorded,
// sent back to its maker, or made for another rank or handshake does not fit. The client proves
// first: a stranger who connects learns nothing with which to try tokens.
//
// The proofs say who joins. What ranks send afterwards is neither secret nor protected.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::transport {

using Nonce = std::array<std::byte, 32>;
using TokenProof = std::array<std::byte, 32>;

// Random bytes that no other process can predict.
Nonce new_nonce();

enum class Side : char { Client = 'c', Server = 's' };

// What both sides have seen of a handshake.
struct Transcript {
  std::string_view handshake;
  std::span<const std::byte> hello;
  const Nonce& challenge;
};

// The proof of one side. nullopt: libcrypto does not have HMAC-SHA-256.
std::optional<TokenProof> prove(std::string_view token, Side side, const Transcript& transcript);

// Whether that side, the other one, knows the token. Takes the same time for all wrong proofs.
bool is_proven(std::string_view token, Side side, const Transcript& transcript,
               const TokenProof& proof);

// A name that only processes with the token can know, of 32 letters and digits.
std::string secret_name(std::string_view token, std::string_view text);
// Another such name every time, which only those can know who are told.
std::string random_name();

}  // namespace sluice::transport
