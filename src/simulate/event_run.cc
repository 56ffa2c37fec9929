#include "simulate/event_run.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

namespace sluice::simulate {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Times this close together are equal, because sums of times round.
constexpr double kSameMoment = 1e-12;

class EventRun {
 public:
  EventRun(const Dataflow& flow, const FlowNetwork& network, const RunOptions& options)
      : flow_{flow},
        network_{network},
        options_{options},
        fair_share_{network.bytes_per_s()},
        next_out_(static_cast<std::size_t>(network.ranks()), 0),
        done_(next_out_) {
    operations_.resize(flow.operations.size());
    messages_.resize(flow.messages.size());
    list_messages();
  }

  std::vector<double> run() {
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const DataflowOperation& operation = flow_.operations[i];
      operations_[i] = {operation.waits_for + 1, operation.messages};
      const auto rank = static_cast<std::size_t>(operation.rank);
      add_event(options_.starts_s.empty() ? 0 : options_.starts_s[rank], Kind::Enabled, i);
    }
    for (std::size_t rank = 0; rank < options_.starts_s.size(); ++rank)
      done_[rank] = options_.starts_s[rank];
    while (advance()) {
    }
    return done_;
  }

 private:
  enum class Kind : std::uint8_t { Enabled, Left, Arrived, Finished };
  struct Event {
    double time;
    Kind kind;
    std::size_t which;  // an operation; for Left a message
    bool operator>(const Event& other) const { return time > other.time; }
  };
  struct Operation {
    std::uint32_t waits_for = 0;
    std::uint32_t messages = 0;
    bool ready = false;
  };
  struct Message {
    std::size_t next = 0;  // the next message of these two ranks; its own index: none
    bool is_next = false;  // all earlier messages of these two ranks have left
    double latency_s = 0;
    double gap_s = 0;
    double wait_s = 0;  // for gaps of earlier messages
    double left = 0;    // bytes to send
    double ends = 0;
    double rate = 0;
  };

  void add_event(double time, Kind kind, std::size_t which) { events_.push({time, kind, which}); }

  // Lists the messages of each operation and their order between two ranks.
  void list_messages() {
    const std::size_t count = flow_.messages.size();
    message_begins_.assign(flow_.operations.size() + 1, 0);
    for (const DataflowMessage& message : flow_.messages) {
      ++message_begins_[message.send + 1];
      ++message_begins_[message.receive + 1];
    }
    for (std::size_t i = 1; i < message_begins_.size(); ++i)
      message_begins_[i] += message_begins_[i - 1];
    message_lists_.resize(2 * count);
    std::vector<std::uint32_t> fill{message_begins_.begin(), message_begins_.end() - 1};
    std::vector<LinkId> links;
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      const DataflowMessage& message = flow_.messages[m];
      message_lists_[fill[message.send]++] = static_cast<std::uint32_t>(m);
      message_lists_[fill[message.receive]++] = static_cast<std::uint32_t>(m);
      const auto same_pair = [&](const DataflowMessage& other) {
        return other.from == message.from && other.to == message.to;
      };
      links.clear();
      messages_[m] = {.next = m + 1 < count && same_pair(flow_.messages[m + 1]) ? m + 1 : m,
                      .is_next = m == 0 || !same_pair(flow_.messages[m - 1]),
                      .latency_s = network_.route(message.from, message.to, links),
                      .gap_s = network_.gap_s(message.from, message.to),
                      .left = message.share * options_.bytes};
    }
  }

  bool advance() {
    double next = events_.empty() ? kNever : events_.top().time;
    for (const std::size_t m : in_flight_) next = std::min(next, messages_[m].ends);
    if (next == kNever) return false;
    const double passed = next - now_;
    now_ = next;
    const double moment = now_ + kSameMoment * now_;
    std::size_t kept = 0;
    leaving_.clear();
    for (const std::size_t m : in_flight_) {
      Message& message = messages_[m];
      if (message.ends <= moment) {
        leaving_.push_back(m);
      } else {
        message.left -= message.rate * passed;
        in_flight_[kept++] = m;
      }
    }
    bool changed = kept != in_flight_.size();
    in_flight_.resize(kept);
    for (const std::size_t m : leaving_) leave_after_wait(m);
    do {
      start_ready();
      while (!events_.empty() && events_.top().time <= moment) {
        const Event event = events_.top();
        events_.pop();
        handle(event);
      }
    } while (!ready_.empty());
    for (const std::size_t m : starting_) in_flight_.push_back(m);
    changed = changed || !starting_.empty();
    starting_.clear();
    if (changed) share_links();
    return true;
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case Kind::Enabled:
        enable(event.which);
        break;
      case Kind::Left:
        leave(event.which);
        break;
      case Kind::Arrived: {
        Operation& receive = operations_[event.which];
        if (--receive.messages == 0) finish_after(event.which);
        break;
      }
      case Kind::Finished:
        finish(event.which);
        break;
    }
  }

  // A predecessor of the operation is done.
  void enable(std::size_t id) {
    Operation& operation = operations_[id];
    if (--operation.waits_for > 0) return;
    operation.ready = true;
    if (message_begins_[id] == message_begins_[id + 1]) finish_after(id);
    for (std::uint32_t i = message_begins_[id]; i < message_begins_[id + 1]; ++i)
      add_if_ready(message_lists_[i]);
  }

  void add_if_ready(std::size_t m) {
    const DataflowMessage& message = flow_.messages[m];
    if (messages_[m].is_next && operations_[message.send].ready &&
        operations_[message.receive].ready)
      ready_.push_back(m);
  }

  // Starts the messages that are ready now. Every rank prepares first that to the next rank after
  // it, so that messages do not meet at a receiver.
  void start_ready() {
    const auto distance = [&](std::size_t m) {
      const DataflowMessage& message = flow_.messages[m];
      return (message.to - message.from + network_.ranks()) % network_.ranks();
    };
    std::vector<std::size_t> ready;
    ready.swap(ready_);
    if (ready.size() > 1) {
      std::sort(ready.begin(), ready.end(), [&](std::size_t a, std::size_t b) {
        return std::pair{distance(a), a} < std::pair{distance(b), b};
      });
    }
    for (const std::size_t m : ready) {
      double& next_out = next_out_[static_cast<std::size_t>(flow_.messages[m].from)];
      messages_[m].wait_s = std::max(0.0, next_out - now_);
      next_out = std::max(now_, next_out) + messages_[m].gap_s;
      if (messages_[m].left > 0) {
        starting_.push_back(m);
      } else {
        leave_after_wait(m);
      }
    }
  }

  // Its last byte has left the links.
  void leave_after_wait(std::size_t m) {
    if (messages_[m].wait_s > 0) {
      add_event(now_ + messages_[m].wait_s, Kind::Left, m);
    } else {
      leave(m);
    }
  }

  void leave(std::size_t m) {
    add_event(now_ + messages_[m].latency_s, Kind::Arrived, flow_.messages[m].receive);
    const std::size_t next = messages_[m].next;
    messages_[m].is_next = false;
    finish(flow_.messages[m].send);
    if (next != m) {
      messages_[next].is_next = true;
      add_if_ready(next);
    }
  }

  void finish_after(std::size_t id) {
    const double bytes = flow_.operations[id].added * options_.bytes;
    add_event(now_ + bytes * network_.reduce_s_per_byte(), Kind::Finished, id);
  }

  void finish(std::size_t id) {
    double& done = done_[static_cast<std::size_t>(flow_.operations[id].rank)];
    done = std::max(done, now_);
    for (const std::uint32_t follower : flow_.followers_of(static_cast<std::uint32_t>(id)))
      enable(follower);
  }

  void share_links() {
    routes_.clear();
    for (const std::size_t m : in_flight_) {
      const DataflowMessage& message = flow_.messages[m];
      network_.route(message.from, message.to, routes_.links);
      routes_.ends.push_back(static_cast<std::uint32_t>(routes_.links.size()));
    }
    const std::vector<double>& rates = fair_share_.rates(routes_);
    for (std::size_t i = 0; i < in_flight_.size(); ++i) {
      Message& message = messages_[in_flight_[i]];
      message.rate = rates[i];
      message.ends = now_ + message.left / message.rate;
    }
  }

  const Dataflow& flow_;
  const FlowNetwork& network_;
  const RunOptions& options_;
  double now_ = 0;
  FairShare fair_share_;
  std::vector<Operation> operations_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> message_begins_;
  std::vector<std::uint32_t> message_lists_;  // by operation
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::size_t> ready_;
  std::vector<double> next_out_;  // when each rank may prepare a message
  std::vector<std::size_t> in_flight_;
  std::vector<std::size_t> starting_;
  std::vector<std::size_t> leaving_;
  FlowSet routes_;
  std::vector<double> done_;
};

}  // namespace

std::vector<double> run_events(const Dataflow& flow, const FlowNetwork& network,
                               const RunOptions& options) {
  return EventRun{flow, network, options}.run();
}

}  // namespace sluice::simulate
