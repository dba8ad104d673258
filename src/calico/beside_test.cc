#include "calico/beside.h"

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "register/format/records.h"

namespace croft::wire {
namespace {

using std::chrono::seconds;

core::CoolingBeside cooling(std::uint32_t ordinal, std::uint64_t sequence_number = 7) {
  core::CoolingBeside one{ordinal, core::SequenceNumber(sequence_number), {}};
  one.cooling.released_at.wall = WallTime(seconds(1'700'000'000)) + std::chrono::nanoseconds(120'000'000);
  one.cooling.released_at.since_boot = std::chrono::nanoseconds(5'000'000'001);
  one.cooling.released_at.boot.bytes = {0x01, 0xab};
  one.cooling.previous_handle = "net.c1";
  one.cooling.previous_secondary.own() = {{"node", "oak"}, {"pod", "a \"b\"\n"}};
  return one;
}

std::vector<PoolBeside> pools() {
  const auto v4 = net::Prefix::parse("10.0.0.0/16").value(), v6 = net::Prefix::parse("fd00::/64").value();
  return {{v4, {}, seconds(0)},
          {v4, net::Address::parse("10.0.0.1").value(), seconds(90)},
          {v6, net::Address::parse("fd00::1").value(), core::kCooldownMax},
          {v6, net::Address::parse("::ffff:10.0.0.1").value(), seconds(1)},
          {v4, {}, seconds(0), true},
          {v4, {}, seconds(0), false, true}};
}

const std::string kPool = R"({"v":1,"cidr":"10.0.0.0/16","gateway":"10.0.0.1","cooldownSeconds":90})";
const std::string kCooling =
    R"({"v":1,"cooling":[{"ordinal":3,"sequenceNumber":7,"releasedAt":"2023-11-14T22:13:20.12Z",)"
    R"("sinceBootNanoseconds":5000000001,"bootID":"01ab0000000000000000000000000000",)"
    R"("previousHandle":"net.c1","previousSecondary":{"node":"oak","pod":"a \"b\"\u000a"}}]})";

std::string pool_error(const std::string& bytes) {
  const auto read = decode_pool_beside("pool a", bytes);
  return read ? "read" : std::string(name_of(read.error().code)) + ": " + read.error().message;
}
std::string cooling_error(const std::string& bytes) {
  const auto read = decode_cooling_beside("block b", bytes);
  return read ? "read" : std::string(name_of(read.error().code)) + ": " + read.error().message;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

/// Older versions take it for what the last holder had, and keep it.
TEST(BesideCalico, TheCooldownOfTheReleaseIsAmongTheTexts) {
  core::CoolingBeside one = cooling(3);
  one.cooling.cooldown = seconds(600);
  const std::string with_it =
      replaced(kCooling, R"("previousSecondary":{)", R"("previousSecondary":{"croft-cooldown":"600",)");
  EXPECT_EQ(encode_cooling_beside({one}), with_it);
  EXPECT_EQ(decode_cooling_beside("block b", with_it).value(), std::vector{one});
  for (const char* text : {"0600", "0", "-1", "1201", "", "soon", "99999999999999999999"}) {
    const std::string other = replaced(with_it, "600", text);
    const auto read = decode_cooling_beside("block b", other).value();
    EXPECT_EQ(read.front().cooling.cooldown, seconds(0)) << text;
    EXPECT_EQ(encode_cooling_beside(read), other) << "stays a text";
  }
}

TEST(BesideCalico, AsDocumented) {
  EXPECT_EQ(encode_pool_beside(pools()[1]), kPool);
  EXPECT_EQ(encode_pool_beside(pools()[0]), R"({"v":1,"cidr":"10.0.0.0/16","cooldownSeconds":0})");
  EXPECT_EQ(encode_cooling_beside({cooling(3)}), kCooling);
  EXPECT_EQ(encode_cooling_beside({}), R"({"v":1,"cooling":[]})");
}

TEST(BesideCalico, RoundTrips) {
  for (const PoolBeside& pool : pools()) {
    const std::string bytes = encode_pool_beside(pool);
    const auto again = decode_pool_beside("p", bytes);
    ASSERT_TRUE(again) << again.error().message << bytes;
    EXPECT_EQ(*again, pool) << bytes;
  }
  core::CoolingBeside bare{0, core::SequenceNumber(std::numeric_limits<std::uint64_t>::max()), {}};
  bare.cooling.released_at.wall = WallTime(seconds(-1));
  std::vector<core::CoolingBeside> whole_block;
  for (std::uint32_t ordinal = 0; ordinal < 4096; ++ordinal) whole_block.push_back({ordinal, {}, {}});
  for (const auto& list :
       {std::vector<core::CoolingBeside>{}, {bare}, {bare, cooling(1), cooling(4095)}, whole_block}) {
    const auto again = decode_cooling_beside("b", encode_cooling_beside(list));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, list) << list.size();
  }
}

TEST(BesideCalico, DamageIsNamedWithItsKey) {
  EXPECT_EQ(pool_error(""), "corrupt: \"pool a\" is damaged: no {\"v\": found at byte 0");
  EXPECT_EQ(pool_error(replaced(kPool, "\"10.0.0.1\"", "\"oak\"")),
            "corrupt: \"pool a\" is damaged: gateway is no IP address at byte 43");
  EXPECT_EQ(cooling_error(replaced(kCooling, ":3,", ":65536,")),
            "corrupt: \"block b\" is damaged: number 65536 is larger than 65535 at byte 34");
  EXPECT_EQ(pool_error(std::string(kRecordBytesMax + 1, ' ')), "corrupt: \"pool a\" is damaged: it is too long");
  EXPECT_EQ(decode_pool_beside("a\nb\x1b", "").error().message,
            "\"a\\x0ab\\x1b\" is damaged: no {\"v\": found at byte 0");
}

TEST(BesideCalico, NewerVersions) {
  EXPECT_EQ(pool_error(replaced(kPool, "\"v\":1", "\"v\":2")),
            "newer_version: \"pool a\" has format 2, this program reads up to 1; upgrade Croft here");
  EXPECT_EQ(cooling_error(R"({"v":4294967295,"anything":[])"),
            "newer_version: \"block b\" has format 4294967295, this program reads up to 1; upgrade Croft here");
  EXPECT_EQ(cooling_error(R"({"v":4294967296,"cooling":[]})").substr(0, 8), "corrupt:");
}

TEST(BesideCalico, NothingIsReadThatIsNotWrittenHere) {
  EXPECT_EQ(pool_error(replaced(kPool, "\"v\":1", "\"v\":0")).substr(0, 8), "corrupt:");
  EXPECT_EQ(cooling_error(replaced(kCooling, "\"v\":1", "\"v\":0")).substr(0, 8), "corrupt:");
  EXPECT_EQ(pool_error(kPool + " ").substr(0, 8), "corrupt:");
  EXPECT_EQ(pool_error(replaced(kPool, ",\"gateway\"", ",\"color\":1,\"gateway\"")).substr(0, 8), "corrupt:");
  EXPECT_EQ(pool_error(replaced(kPool, "10.0.0.0/16", "10.0.0.1/16")).substr(0, 8), "corrupt:");
  // Ascending, each once: the address of one entry is not cooling twice.
  std::vector<core::CoolingBeside> list{cooling(3), cooling(3, 8)};
  EXPECT_EQ(cooling_error(encode_cooling_beside(list)).substr(0, 8), "corrupt:");
  list = {cooling(4), cooling(3)};
  EXPECT_EQ(cooling_error(encode_cooling_beside(list)).substr(0, 8), "corrupt:");
}

/// Each way of cutting a record short, and of changing one byte: refused, or what was read stays what it is.
template <class Decode, class Encode>
void damage_everywhere(const std::string& good, Decode decode, Encode encode) {
  const auto refused = [](const Error& error) {
    return error.code == ErrorCode::corrupt || error.code == ErrorCode::newer_version;
  };
  for (std::size_t length = 0; length < good.size(); ++length) {
    const auto read = decode("k", good.substr(0, length));
    ASSERT_FALSE(read) << length;
    EXPECT_EQ(read.error().code, ErrorCode::corrupt) << length;
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char c : {'0', '1', '9', 'a', 'A', '"', '\\', '}', ']', ',', ':', '-', ' ', '\0', '\xff'}) {
      std::string bytes = good;
      bytes[at] = c;
      const auto read = decode("k", bytes);
      if (read) {
        const auto again = decode("k", encode(*read));
        ASSERT_TRUE(again) << again.error().message << bytes;
        EXPECT_EQ(*again, *read) << bytes;
      } else {
        EXPECT_TRUE(refused(read.error())) << at << " " << read.error().message;
      }
    }
  }
}

TEST(BesideCalico, DamageAnywhere) {
  damage_everywhere(kPool, decode_pool_beside, encode_pool_beside);
  damage_everywhere(encode_pool_beside(pools()[2]), decode_pool_beside, encode_pool_beside);
  damage_everywhere(encode_cooling_beside({cooling(3), cooling(14)}), decode_cooling_beside, encode_cooling_beside);
}

}  // namespace
}  // namespace croft::wire
