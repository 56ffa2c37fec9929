// The progress display of a training, with made-up events.

#include "cli/train/training_display.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "tests/base/has.h"

namespace sluice::cli {
namespace {

using std::chrono::milliseconds;

train::StepReport halfway() {
  return {.step = 1000,
          .steps = 2000,
          .epoch = 4,
          .epochs = 8,
          .rate = 0.08,
          .loss = 0.12345,
          .images_per_s = 2604.6,
          .exposed_comm_fraction = 0.037,
          .elapsed_s = 20,
          .left_s = 19.6};
}

// The line without its colour codes.
std::string bare(const std::string& line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\033') {
      i = line.find('m', i);
    } else {
      text += line[i];
    }
  }
  return text;
}

TEST(TrainingBar, ShowsAllPartsOnAWideTerminal) {
  const std::string line = bar_line({halfway(), 96.5, {}}, {.width = 200, .colour = false});
  for (const char* const part :
       {"epoch 5/8", "50%", "step 1,000/2,000", "2,605 images/s", "loss 0.1235", "accuracy 96.50%",
        "rate 0.08", "network 3.7%", "20 s left"})
    EXPECT_TRUE(base::has(line, part)) << part << "\n" << line;
  std::string half;
  for (int i = 0; i < 15; ++i) half += "━";
  EXPECT_TRUE(base::has(line, "  " + half + "─")) << "a bar of 30 is half full: " << line;
}

TEST(TrainingBar, NeverReachesTheEdgeOfTheTerminal) {
  for (int width = 0; width <= 200; ++width) {
    for (const bool colour : {false, true}) {
      const std::string line =
          bare(bar_line({halfway(), 96.5, {}}, {.width = width, .colour = colour}));
      EXPECT_LT(columns_of(line), static_cast<std::size_t>(std::max(width, 1))) << width << line;
      EXPECT_EQ(line.find('\n'), std::string::npos);
    }
  }
}

TEST(TrainingBar, DropsTheLeastImportantPartsFirst) {
  const std::string line = bar_line({halfway(), 96.5, {}}, {.width = 80, .colour = false});
  for (const char* const part : {"epoch 5/8", "50%", "images/s", "loss"})
    EXPECT_TRUE(base::has(line, part)) << part << "\n" << line;
  for (const char* const part : {"rate", "network"}) EXPECT_FALSE(base::has(line, part)) << line;
}

TEST(TrainingBar, HasNoColoursUnlessAskedFor) {
  EXPECT_FALSE(base::has(bar_line({halfway(), {}, {}}, {.width = 100, .colour = false}), "\033"));
  EXPECT_TRUE(base::has(bar_line({halfway(), {}, {}}, {.width = 100, .colour = true}), "\033["));
}

TEST(TrainingBar, StaysWithinItsEpochsAtTheEnd) {
  train::StepReport last = halfway();
  last.step = last.steps;
  last.epoch = 8;
  EXPECT_TRUE(base::has(bar_line({last, {}, {}}, {.width = 100, .colour = false}), "epoch 8/8"));
  EXPECT_TRUE(base::has(bar_line({last, {}, {}}, {.width = 100, .colour = false}), "100%"));
  EXPECT_TRUE(base::has(bar_line({{}, {}, {}}, {.width = 100, .colour = false}), "0%"))
      << "before any step";
}

TEST(TrainingBar, ShowsARunningEvaluation) {
  EXPECT_TRUE(base::has(bar_line({halfway(), 90, 0.25}, {.width = 120, .colour = false}),
                        "evaluating 25%"));
}

// A display on a fake terminal with a fake clock.
struct Screen {
  explicit Screen(int width)
      : display{{.write = [this](std::string_view text) { written.emplace_back(text); },
                 .width = [width] { return width; },
                 .now = [this] { return now; }}} {}

  std::string all() const {
    std::string text;
    for (const std::string& part : written) text += part;
    return text;
  }

  std::vector<std::string> written;
  std::chrono::steady_clock::time_point now{std::chrono::hours{1}};
  TrainingDisplay display;
};

TEST(TrainingDisplay, DrawsAtMostTenTimesASecondOnATerminal) {
  Screen screen{100};
  for (int i = 0; i < 1000; ++i) {
    screen.display.stepped(halfway());
    screen.now += milliseconds{1};
  }
  EXPECT_EQ(screen.written.size(), 10U);
  for (const std::string& drawn : screen.written) {
    EXPECT_TRUE(drawn.starts_with("\r\033[K"));
    EXPECT_FALSE(drawn.ends_with("\n"));
  }
}

TEST(TrainingDisplay, WritesALineEveryTenSecondsElsewhere) {
  Screen screen{0};
  screen.display.started({.ranks = 2, .data = "demo", .steps = 2000});
  screen.written.clear();
  for (int i = 0; i < 350; ++i) {
    screen.now += milliseconds{100};
    screen.display.stepped(halfway());
    screen.display.evaluating(1, 2);
  }
  EXPECT_EQ(screen.written.size(), 3U) << screen.all();
  EXPECT_FALSE(base::has(screen.all(), "\r")) << "nothing but lines";
  EXPECT_FALSE(base::has(screen.all(), "\033"));
  EXPECT_TRUE(screen.all().ends_with("\n"));
}

TEST(TrainingDisplay, EvaluationIsAPermanentLine) {
  for (const int width : {0, 100}) {
    Screen screen{width};
    screen.display.stepped(halfway());
    screen.display.evaluated({.step = 1000,
                              .epoch = 4,
                              .accuracy = 97.25,
                              .loss = 0.0812,
                              .elapsed_s = 21,
                              .best = true});
    const std::string all = screen.all();
    EXPECT_TRUE(base::has(all, "epoch 4/8  accuracy 97.25%  loss 0.0812 (0.1235 in training)"))
        << all;
    EXPECT_TRUE(base::has(all, "21 s  best\n")) << all;
  }
}

TEST(TrainingDisplay, LineReplacesTheBar) {
  Screen screen{100};
  screen.display.stepped(halfway());
  screen.display.note("forward is in f32");
  ASSERT_EQ(screen.written.size(), 3U);
  EXPECT_EQ(screen.written[1], "\r\033[K");
  EXPECT_EQ(screen.written[2], "note: forward is in f32\n");
  screen.display.clear();
  EXPECT_EQ(screen.written.size(), 3U) << "there is no bar to clear";
}

TEST(Figures, AreReadable) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(1281167), "1,281,167");
  EXPECT_EQ(with_commas(-25557032), "-25,557,032");
  EXPECT_EQ(speed_text(0.8344), "0.834");
  EXPECT_EQ(speed_text(9.712), "9.71");
  EXPECT_EQ(speed_text(96.44), "96.4");
  EXPECT_EQ(speed_text(12345.4), "12,345");
  EXPECT_EQ(span_text(0.44), "0.4 s");
  EXPECT_EQ(span_text(12.4), "12 s");
  EXPECT_EQ(span_text(185), "3 min 05 s");
  EXPECT_EQ(span_text(7 * 60 + 2 * 3600), "2 h 07 min");
  EXPECT_EQ(span_text(3 * 86400 + 4 * 3600), "3 d 04 h");
  EXPECT_EQ(span_text(-1), "?");
  EXPECT_EQ(columns_of("a━─b"), 4U);
}

}  // namespace
}  // namespace sluice::cli
