#include "bootstrap/launch/rank_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>

namespace sluice::bootstrap {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
  void put(std::string_view text) const { EXPECT_TRUE(write_all(write_end.number(), text)); }
  std::string take() const {
    std::string text(1 << 16, '\0');
    const ssize_t got = read(read_end.number(), text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }
  base::Fd read_end;
  base::Fd write_end;
};

TEST(LineRelay, CopiesWholeLinesOnly) {
  Pipe in;
  const Pipe out;
  LineRelay relay{std::move(in.read_end), out.write_end.number(), "[3] ", 2};
  in.put("one\ntw");
  EXPECT_TRUE(relay.copy_some());
  EXPECT_EQ(out.take(), "[3] one\n");
  EXPECT_TRUE(relay.copy_some());
  EXPECT_EQ(out.take(), "");
  in.put("o\n\nthr");
  EXPECT_TRUE(relay.copy_some());
  EXPECT_EQ(out.take(), "[3] two\n[3] \n");
  in.write_end.reset();
  EXPECT_TRUE(relay.copy_some());
  EXPECT_EQ(out.take(), "[3] thr\n");
  EXPECT_FALSE(relay.open());
  EXPECT_EQ(relay.last_lines(), (std::deque<std::string>{"", "thr"}));
}

TEST(LineRelay, FinishesWhileThePipeIsStillOpen) {
  Pipe in;
  const Pipe out;
  LineRelay relay{std::move(in.read_end), out.write_end.number(), "", 0};
  in.put("a\nb");
  EXPECT_TRUE(relay.finish());
  EXPECT_EQ(out.take(), "a\nb\n");
  EXPECT_TRUE(relay.finish());
  EXPECT_EQ(out.take(), "");
}

TEST(LineRelay, ReportsThatTheReaderIsGone) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe in;
  Pipe out;
  LineRelay relay{std::move(in.read_end), out.write_end.number(), "", 0};
  out.read_end.reset();
  in.put("a\n");
  EXPECT_FALSE(relay.copy_some());
  std::signal(SIGPIPE, SIG_DFL);
}

}  // namespace
}  // namespace sluice::bootstrap
