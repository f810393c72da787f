// SPDX-License-Identifier: Apache-2.0
#include "monitor/export/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace tw::monitor {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr double kEventsBegin = 1'767'225'600;

/// A reader of its own for what the tests need of Protocol Buffers.
class Message {
 public:
  explicit Message(std::string bytes) : bytes_(std::move(bytes)) {
    while (at_ < bytes_.size()) read_field();
  }

  std::multimap<std::uint64_t, std::string> fields;  ///< numbers as their bytes

 private:
  std::uint64_t read_varint() {
    std::uint64_t value = 0;
    for (int shift = 0; at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) break;
    }
    return value;
  }

  void read_field() {
    const std::uint64_t key = read_varint();
    std::uint64_t size = (key & 7) == 1 ? 8 : 4;
    if ((key & 7) == 0) {
      fields.emplace(key >> 3, std::to_string(read_varint()));
      return;
    }
    if ((key & 7) == 2) size = read_varint();
    fields.emplace(key >> 3, bytes_.substr(at_, size));
    at_ += size;
  }

  std::string bytes_;
  std::size_t at_ = 0;
};

template <class Number>
Number number_of(const std::string& bytes) {
  Number number{};
  EXPECT_EQ(bytes.size(), sizeof(number));
  std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof(number)));
  return number;
}

struct Scalars {
  double at_s;
  std::string step;
  std::map<std::string, float> values;
};

std::vector<Scalars> read(std::string file) {
  std::vector<Scalars> events;
  while (!file.empty()) {
    const auto length = number_of<std::uint64_t>(file.substr(0, 8));
    const std::string bytes = file.substr(12, length);
    EXPECT_EQ(number_of<std::uint32_t>(file.substr(8, 4)), masked_crc32c(file.substr(0, 8)));
    EXPECT_EQ(number_of<std::uint32_t>(file.substr(12 + length, 4)), masked_crc32c(bytes));
    file.erase(0, 16 + length);
    const Message event(bytes);
    Scalars scalars{number_of<double>(event.fields.find(1)->second), event.fields.find(2)->second, {}};
    const Message summary(event.fields.find(5)->second);
    for (const auto& [number, value] : summary.fields) {
      const Message one(value);
      scalars.values[one.fields.find(1)->second] = number_of<float>(one.fields.find(2)->second);
    }
    events.push_back(scalars);
  }
  return events;
}

BoardRound round_of(Round number) {
  const double begun_s = kEventsBegin + 4 * static_cast<double>(number);
  BoardRound round{.round = number, .begun_s = begun_s, .called_s = begun_s + 2, .committed_s = begun_s + 4};
  round.calc_s = 3;
  round.comm_s = 1;
  round.samples = 256;
  round.contributors = {PeerId{1}, PeerId{2}};
  round.loss = 2.5;
  return round;
}

Board two_rounds() {
  Board board;
  board.round = 2;
  board.rounds = {round_of(1), round_of(2), {.round = 3, .begun_s = kEventsBegin + 12}};
  board.money.machines_usd = 0.5;
  board.money.usd_per_million = 2;
  return board;
}

TEST(TensorBoard, checksums_are_those_of_tensorflow) {
  // RFC 3720 B.4: 32 zeros have CRC-32C 0x8a9136aa, "123456789" has 0xe3069283; masked by TensorFlow's rule.
  EXPECT_EQ(masked_crc32c(std::string(32, '\0')), 0x0fd7fffaU);
  EXPECT_EQ(masked_crc32c("123456789"), 0xc78ab0e5U);
}

TEST(TensorBoard, has_each_round_once_with_its_end_as_time) {
  TensorBoardEvents events;
  const auto found = read(events.take_all(two_rounds()));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].step, "1");
  EXPECT_EQ(found[0].at_s, kEventsBegin + 8);
  EXPECT_THAT(found[0].values,
              UnorderedElementsAre(Pair("loss/batch", 2.5F), Pair("speed/samples_per_s", 64.F),
                                   Pair("speed/granularity", 3.F), Pair("speed/calc_s", 3.F),
                                   Pair("speed/comm_s", 1.F), Pair("run/contributors", 2.F)));
  EXPECT_EQ(found[1].values.at("money/usd"), 0.5F);
  EXPECT_EQ(found[1].values.at("money/usd_per_million_samples"), 2.F);
  EXPECT_EQ(events.take_all(two_rounds()), "");
}

TEST(TensorBoard, has_each_evaluation_once_with_the_time_at_which_it_was_told) {
  Board board = two_rounds();
  board.evaluations = {{1, kEventsBegin + 9, PeerId{1}, "accuracy", 0.5},
                       {1, kEventsBegin + 9, PeerId{2}, "accuracy", 0.25}};
  TensorBoardEvents events;
  const auto found = read(events.take_all(board));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[2].step, "1");
  EXPECT_EQ(found[2].at_s, kEventsBegin + 9);
  EXPECT_THAT(found[2].values, UnorderedElementsAre(Pair("evaluation/accuracy", 0.5F)));
  EXPECT_EQ(events.take_all(board), "");
}

TEST(TensorBoard, waits_for_what_peers_still_tell_of_a_round) {
  TensorBoardEvents events;
  Board board = two_rounds();
  board.peers = {{.peer = PeerId{1}, .state = PeerState::computing}};
  board.now_s = kEventsBegin + 12 + TensorBoardEvents::kSettledAfterS - 0.1;
  EXPECT_EQ(read(events.take_settled(board)).size(), 1U);
  board.rounds[1].loss = 2;
  board.now_s += 0.2;
  const auto found = read(events.take_settled(board));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].values.at("loss/batch"), 2.F);
  EXPECT_EQ(found[0].values.at("money/usd"), 0.5F);

  board.rounds.back() = round_of(3);
  board.complete = true;
  EXPECT_EQ(events.take_settled(board), "");
  board.peers[0].state = PeerState::left;
  EXPECT_EQ(read(events.take_settled(board)).size(), 1U);
}

TEST(TensorBoard, takes_rounds_before_another_one_with_the_money_of_this_time) {
  TensorBoardEvents events;
  Board board = two_rounds();
  board.peers = {{.peer = PeerId{1}, .state = PeerState::computing}};
  board.now_s = kEventsBegin + 12;
  EXPECT_EQ(events.take_before(board, 1), "");
  const auto first = read(events.take_before(board, 2));
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].values.at("money/usd"), 0.5F);
  board.money.machines_usd = 0.75;
  EXPECT_EQ(read(events.take_all(board)).front().values.at("money/usd"), 0.75F);
}

TEST(TensorBoard, goes_on_with_what_is_new) {
  TensorBoardEvents events;
  Board board = two_rounds();
  events.take_all(board);
  board.rounds.back() = round_of(3);
  board.round = 3;
  const auto found = read(events.take_all(board));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].step, "3");
}

TEST(TensorBoard, tells_nothing_that_is_not_known) {
  Board board = two_rounds();
  board.money = {};
  for (BoardRound& round : board.rounds) {
    round.loss.reset();
    round.comm_s = 0;
  }
  TensorBoardEvents events;
  for (const Scalars& found : read(events.take_all(board)))
    EXPECT_THAT(found.values,
                UnorderedElementsAre(Pair("speed/samples_per_s", 64.F), Pair("speed/calc_s", 3.F),
                                     Pair("speed/comm_s", 0.F), Pair("run/contributors", 2.F)));
  EXPECT_EQ(TensorBoardEvents().take_all({}), "");
}

TEST(TensorBoard, files_are_named_by_the_begin_of_the_run) {
  EXPECT_EQ(tensorboard_file_name(kEventsBegin + 0.7), "events.out.tfevents.1767225600.tradewind");
  const std::string first = TensorBoardEvents::begin(kEventsBegin);
  const Message event(first.substr(12, first.size() - 16));
  EXPECT_EQ(event.fields.find(3)->second, "brain.Event:2");
  EXPECT_EQ(number_of<double>(event.fields.find(1)->second), kEventsBegin);
}

}  // namespace
}  // namespace tw::monitor
