#include "gradient/description.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/format.h"
#include "engine/internal_collectives.h"

namespace sluice::gradient {
namespace {

constexpr std::array<std::string_view, 13> kOptions = {"theta",
                                                       "groups",
                                                       "wire type",
                                                       "force_wire",
                                                       "double buffering",
                                                       "sparsity",
                                                       "sparse chunk",
                                                       "dense steps",
                                                       "ramp steps",
                                                       "loss scaling",
                                                       "initial loss scale",
                                                       "growth steps",
                                                       "algorithm"};

std::string_view name(WireType type) {
  switch (type) {
    case WireType::F32:
      return "f32";
    case WireType::F16:
      return "f16";
    case WireType::BF16:
      return "bf16";
  }
  return "";
}

std::string label(std::size_t line) {
  return line < kOptions.size() ? std::string{kOptions[line]}
                                : base::format("gradient {}", line - kOptions.size());
}

std::string line_or_none(const std::vector<std::string>& description, std::size_t line) {
  return line < description.size() ? description[line] : "none";
}

std::size_t first_difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto [at, unused] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(at - a.begin());
}

std::int64_t minimum_over_ranks(Communicator& communicator, std::int64_t own) {
  communicator.all_reduce(std::span{&own, 1}, {.op = ReduceOp::Min}).wait();
  return own;
}

// Returns the root's text at every rank.
std::string broadcast_text(Communicator& communicator, std::string text, Rank root) {
  auto bytes = static_cast<std::int64_t>(text.size());
  communicator.broadcast(std::span{&bytes, 1}, {.root = root}).wait();
  text.resize(static_cast<std::size_t>(bytes));
  communicator.broadcast({text.data(), text.size(), DataType::U8}, {.root = root}).wait();
  return text;
}

}  // namespace

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) (text += line) += '\0';
  return text;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t end = 0; (end = text.find('\0')) != std::string_view::npos;) {
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<std::string> describe(const std::vector<GradientSpec>& gradients,
                                  const GradientOptions& options) {
  const auto yes_or_no = [](bool value) { return std::string{value ? "yes" : "no"}; };
  std::vector<std::string> lines = {
      base::format("{} bytes", options.theta),
      options.groups.empty() ? "none" : base::format("{}", base::join(options.groups, ", ")),
      std::string{name(options.wire)},
      yes_or_no(options.force_wire),
      yes_or_no(options.double_buffering),
      base::format("{}", options.sparse.sparsity),
      base::format("{}", options.sparse.chunk),
      base::format("{}", options.sparse.dense_steps),
      base::format("{}", options.sparse.ramp_steps),
      yes_or_no(options.loss_scale.enabled),
      base::format("{}", options.loss_scale.initial),
      base::format("{}", options.loss_scale.growth_steps),
      options.algorithm.empty() ? "chosen by size" : options.algorithm};
  for (const GradientSpec& gradient : gradients) {
    lines.push_back(base::format(
        "\"{}\" of {} {}{}{}", gradient.name, gradient.count, name(gradient.type),
        gradient.strides.empty() ? "" : base::format(" in strides of {}", gradient.strides),
        gradient.may_be_sparse ? "" : " (never sparse)"));
  }
  return lines;
}

std::uint64_t layout_hash(const std::vector<std::string>& description,
                          const std::vector<std::size_t>& order) {
  const std::string text = join_lines(description);
  const XXH64_hash_t seed = XXH3_64bits(text.data(), text.size());
  return XXH3_64bits_withSeed(order.data(), order.size() * sizeof(std::size_t), seed);
}

Status same_as_saved(const std::vector<std::string>& description,
                     const std::vector<std::string>& saved) {
  if (description == saved) return {};
  const std::size_t line = first_difference(description, saved);
  return {Code::InvalidInput,
          base::format("{}: it was saved with {}, and is {} now", label(line),
                       line_or_none(saved, line), line_or_none(description, line))};
}

std::optional<Difference> difference_between_ranks(Communicator& communicator,
                                                   const std::vector<std::string>& lines) {
  if (engine::same_everywhere(communicator, layout_hash(lines, {}))) return std::nullopt;

  const std::vector<std::string> expected =
      split_lines(broadcast_text(communicator, join_lines(lines), 0));
  // A rank whose lines equal rank 0's takes a number larger than any line.
  const std::size_t own = lines == expected ? SIZE_MAX >> 1U : first_difference(lines, expected);
  const auto line =
      static_cast<std::size_t>(minimum_over_ranks(communicator, static_cast<std::int64_t>(own)));
  const auto rank = static_cast<Rank>(
      minimum_over_ranks(communicator, own == line ? communicator.rank() : communicator.size()));
  return Difference{.line = line,
                    .expected = line_or_none(expected, line),
                    .rank = rank,
                    .theirs = broadcast_text(communicator, line_or_none(lines, line), rank)};
}

void require_same(Communicator& communicator, const std::vector<std::string>& description) {
  const std::optional<Difference> found = difference_between_ranks(communicator, description);
  if (!found) return;
  throw Error{
      Status{Code::Mismatch,
             base::format("{}: rank 0 has {}, rank {} has {}; all ranks must average the "
                          "same gradients in the same way",
                          label(found->line), found->expected, found->rank, found->theirs)}};
}

}  // namespace sluice::gradient
