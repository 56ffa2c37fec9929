// network_conformance.h - checks that every Network must pass. Every rank calls each function with
// its end of a network of all ranks. The result is "" or a description of the error.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/format.h"
#include "transport/network.h"

namespace sluice::transport::network_conformance {

inline constexpr std::chrono::seconds kDeadline{30};
inline constexpr std::size_t kSizes[] = {0, 1, 13, 4096, 4097, 300'000, 3'000'000};

// Nearly unique for every (sender, receiver, message, byte).
inline std::byte byte_of(Rank from, Rank to, std::size_t message, std::size_t i) {
  const std::uint64_t mixed = (i + 1) * 2654435761U + static_cast<std::uint64_t>(from) * 97 +
                              static_cast<std::uint64_t>(to) * 1013 + message * 7919;
  return static_cast<std::byte>(mixed >> 7U);
}

template <class Done>
bool eventually(Done&& done) {
  const auto until = Clock::now() + kDeadline;
  while (!done()) {
    if (Clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

// Receives all messages of a peer, in pieces of odd sizes. It alternates between read() and
// arrived().
class Receiver {
 public:
  Receiver(Network& network, Rank own, Rank peer) : network_{network}, own_{own}, peer_{peer} {}

  std::string wrong;
  std::size_t message = 0;

  // True when all messages have been read.
  bool move() {
    while (message < std::size(kSizes) && wrong.empty()) {
      const MessageHeader* const header = network_.incoming(peer_);
      if (header == nullptr) return false;
      const std::size_t bytes = kSizes[message];
      if (header->bytes != bytes || header->number != message ||
          header->signature != static_cast<std::uint64_t>(peer_)) {
        wrong = base::format("from {}: message {} has header {} of {} bytes", peer_, message,
                             header->number, header->bytes);
        return true;
      }
      data_.resize(bytes);
      if (bytes == 0) {
        network_.consume(peer_, 0);
      } else {
        const std::size_t wanted =
            std::min<std::size_t>(bytes - done_, 1 + turn_ * 37'777 % 90'001);
        std::size_t got = 0;
        if (turn_++ % 2 == 0) {
          got = network_.read(peer_, data_.data() + done_, wanted);
        } else {
          const auto here = network_.arrived(peer_);
          got = std::min(wanted, here.size());
          std::copy_n(here.begin(), got, data_.begin() + static_cast<std::ptrdiff_t>(done_));
          if (got > 0) network_.consume(peer_, got);
        }
        if (got == 0) return false;
        done_ += got;
        if (done_ < bytes) continue;
      }
      for (std::size_t i = 0; i < bytes && wrong.empty(); ++i) {
        if (data_[i] != byte_of(peer_, own_, message, i))
          wrong = base::format("from {}: message {}, byte {} is wrong", peer_, message, i);
      }
      done_ = 0;
      ++message;
    }
    return true;
  }

 private:
  Network& network_;
  Rank own_;
  Rank peer_;
  std::vector<std::byte> data_;
  std::size_t done_ = 0;
  std::size_t turn_ = 0;
};

// All pairs exchange messages in both directions at once; all messages of a pair are in flight
// together.
inline std::string all_to_all(Network& network, Rank own, const std::vector<Rank>& peers) {
  std::vector<std::vector<std::byte>> sent;
  std::vector<Receiver> receivers;
  std::vector<std::uint64_t> before;
  for (const Rank peer : peers) {
    before.push_back(network.sent(peer));
    for (std::size_t message = 0; message < std::size(kSizes); ++message) {
      std::vector<std::byte>& data = sent.emplace_back(kSizes[message]);
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = byte_of(own, peer, message, i);
      network.send(
          peer,
          {.signature = static_cast<std::uint64_t>(own), .number = message, .bytes = data.size()},
          data.data());
    }
    receivers.emplace_back(network, own, peer);
  }
  const bool done = eventually([&] {
    bool all = true;
    for (std::size_t p = 0; p < peers.size(); ++p) {
      all = receivers[p].move() && all;
      all = network.sent(peers[p]) - before[p] == std::size(kSizes) && all;
    }
    return all;
  });
  for (const Receiver& receiver : receivers) {
    if (!receiver.wrong.empty()) return receiver.wrong;
  }
  return done ? "" : "not all messages arrived in time";
}

// Every rank sends status updates to all others, and the newest one counts.
inline std::string status_updates(Network& network, Rank own, const std::vector<Rank>& peers) {
  constexpr std::uint64_t kLast = 50;
  for (std::uint64_t entered = 1; entered <= kLast; ++entered) {
    for (const Rank peer : peers)
      network.send_status(
          peer, {.entered = entered, .count = static_cast<std::uint64_t>(own), .step = 7});
  }
  for (const Rank peer : peers) {
    StatusUpdate update;
    std::uint64_t newest = 0;
    const bool came = eventually([&] {
      if (network.receive_status(peer, update)) {
        if (update.entered <= newest || update.count != static_cast<std::uint64_t>(peer))
          return true;
        newest = update.entered;
      }
      return newest == kLast;
    });
    if (!came || newest != kLast || update.step != 7)
      return base::format("the newest status update of rank {} is {}", peer, newest);
  }
  return "";
}

// A rank leaves after its last message: the others receive that message before they notice its end.
inline std::string leaves(std::unique_ptr<Network> network, Rank own,
                          const std::vector<Rank>& peers) {
  constexpr std::size_t kBytes = 2'000'000;
  if (own == 0) {
    std::vector<std::byte> data(kBytes, std::byte{42});
    for (const Rank peer : peers) network->send(peer, {.bytes = kBytes}, data.data());
    const bool out = eventually([&] {
      return std::all_of(peers.begin(), peers.end(),
                         [&](Rank peer) { return network->sent(peer) > 0; });
    });
    network.reset();
    return out ? "" : "it could not send";
  }
  if (std::find(peers.begin(), peers.end(), 0) == peers.end()) return "";
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  std::vector<std::byte> data(kBytes);
  std::size_t done = 0;
  std::string early;
  const bool all = eventually([&] {
    StatusUpdate update;
    (void)network->receive_status(0, update);
    if (network->incoming(0) != nullptr)
      done += network->read(0, data.data() + done, kBytes - done);
    return done == kBytes;
  });
  if (!all) return base::format("{} bytes of {} arrived", done, kBytes);
  if (std::count(data.begin(), data.end(), std::byte{42}) != std::ssize(data)) return "wrong bytes";
  const bool noticed = eventually([&] {
    StatusUpdate update;
    (void)network->receive_status(0, update);
    return !network->death_of(0).empty();
  });
  if (!noticed) return "its end was not noticed";
  return network->death_of(0).find("left") != std::string::npos ? "" : network->death_of(0);
}

}  // namespace sluice::transport::network_conformance
