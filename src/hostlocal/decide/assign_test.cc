#include "hostlocal/decide/assign.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hostlocal/decide/round_robin.h"
#include "hostlocal/decide/test_range_sets.h"

// Numbers in brackets are rows of docs/notes/host-local.md#cases.

namespace croft::core::host_local {
namespace {

using net::Address;
using net::AddressRange;
using testing::IsEmpty;

/// Reservations in memory.
class Book : public Taken {
 public:
  std::set<Address> taken;
  std::vector<Address> held;
  std::map<std::size_t, Address> cursors;
  std::optional<Error> error;  ///< what every question answers
  int questions_held = 0;

  [[nodiscard]] Result<std::optional<Address>> next_free(const AddressRange& range) override {
    if (error) return fail(*error);
    for (std::optional<AddressRange> rest = range; rest; rest = behind(*rest, rest->first())) {
      if (!taken.contains(rest->first())) return std::optional(rest->first());
    }
    return std::optional<Address>();
  }
  [[nodiscard]] Result<bool> is_taken(const Address& address) override {
    if (error) return fail(*error);
    return taken.contains(address);
  }
  [[nodiscard]] Result<std::optional<Address>> cursor(std::size_t set) override {
    const auto found = cursors.find(set);
    return found == cursors.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] Result<std::vector<Address>> held_by_asker() override {
    ++questions_held;
    return held;
  }
};

Address address(std::string_view text) { return address_or_none(text); }

std::vector<Address> addresses(std::initializer_list<std::string_view> texts) {
  std::vector<Address> all;
  for (const auto text : texts) all.push_back(address(text));
  return all;
}

Decision decide(const std::vector<RangeSet>& sets, std::initializer_list<std::string_view> requested, Book& book) {
  return assign(sets, {"dummy", addresses(requested)}, book).value();
}

/// The picks as "<set>: <address> via <gateway>"; behind them the refusal.
std::vector<std::string> outcome(const std::vector<RangeSet>& sets, std::initializer_list<std::string_view> requested,
                                 Book book = {}) {
  const Decision decision = decide(sets, requested, book);
  std::vector<std::string> lines;
  for (const Pick& pick : decision.picks) {
    lines.push_back(std::to_string(pick.set) + ": " + pick.address.to_string() + " via " + pick.gateway.to_string());
  }
  if (decision.refusal) lines.push_back(decision.refusal->message);
  return lines;
}

using Lines = std::vector<std::string>;

const std::vector<RangeSet> kEight = {range_set({spec("192.168.1.0/29")})};
const std::vector<RangeSet> kPlain = {range_set({spec("10.1.2.0/24")})};
const std::vector<RangeSet> kTwo = {range_set({spec("10.1.2.0/24")}), range_set({spec("10.1.3.0/24")})};

// [33]: the broadcast address is never given.
TEST(Assign, FillsARange) {
  Book book;
  for (const char* expected :
       {"192.168.1.2/29", "192.168.1.3/29", "192.168.1.4/29", "192.168.1.5/29", "192.168.1.6/29"}) {
    const Decision decision = decide(kEight, {}, book);
    ASSERT_EQ(decision.refusal, std::nullopt);
    ASSERT_EQ(decision.picks.size(), 1U);
    EXPECT_EQ(decision.picks[0].address.to_string(), expected);
    EXPECT_EQ(decision.picks[0].gateway, address("192.168.1.1"));
    book.taken.insert(decision.picks[0].address.address);
    book.cursors[0] = decision.picks[0].address.address;
  }
  const Decision full = decide(kEight, {}, book);
  EXPECT_EQ(full.refusal, (Error{ErrorCode::exhausted,
                                 "failed to allocate for range 0: no IP addresses available in range set: "
                                 "192.168.1.1-192.168.1.6",
                                 ""}));
  EXPECT_THAT(full.picks, IsEmpty());
}

// [34]
TEST(Assign, AFreedAddressIsNotTheNext) {
  Book book;
  book.cursors[0] = address("192.168.1.2");
  EXPECT_EQ(outcome(kEight, {}, book), Lines{"0: 192.168.1.3/29 via 192.168.1.1"});
}

// [35, 36]
TEST(Assign, GivesARequestedAddressOnce) {
  EXPECT_EQ(outcome(kEight, {"192.168.1.5"}), Lines{"0: 192.168.1.5/29 via 192.168.1.1"});
  Book book;
  book.taken = {address("192.168.1.5")};
  EXPECT_EQ(decide(kEight, {"192.168.1.5"}, book).refusal,
            (Error{ErrorCode::refused_by_configuration,
                   "failed to allocate for range 0: requested IP address 192.168.1.5 is not available in range set "
                   "192.168.1.1-192.168.1.6",
                   ""}));
}

// [37, 62, 100]: a set that no request fits takes its next address; then it turns out that one is left over.
TEST(Assign, RefusesRequestsThatNoSetContains) {
  const std::vector<RangeSet> to_four = {range_set({spec("192.168.1.0/29", "", "192.168.1.4")})};
  const std::vector<RangeSet> from_three = {range_set({spec("192.168.1.0/29", "192.168.1.3")})};
  EXPECT_EQ(outcome(to_four, {"192.168.1.5"}),
            (Lines{"0: 192.168.1.2/29 via 192.168.1.1", "failed to allocate all requested IPs: 192.168.1.5"}));
  EXPECT_EQ(outcome(from_three, {"192.168.1.2"}),
            (Lines{"0: 192.168.1.3/29 via 192.168.1.1", "failed to allocate all requested IPs: 192.168.1.2"}));
  for (const char* outside : {"10.1.2.0", "10.1.2.255", "192.168.9.9"}) {
    Book book;
    const Decision decision = decide(kPlain, {outside}, book);
    EXPECT_EQ(decision.picks.size(), 1U);
    EXPECT_EQ(decision.refusal, (Error{ErrorCode::refused_by_configuration,
                                       std::string("failed to allocate all requested IPs: ") + outside, ""}));
  }
}

// [38, 39, 40, 95]
TEST(Assign, SaysWhichRangesAreFull) {
  const std::string text = "failed to allocate for range 0: no IP addresses available in range set: ";
  Book book;
  book.taken = {address("10.0.0.2"), address("10.0.1.2")};
  EXPECT_EQ(outcome({range_set({spec("10.0.0.0/30")})}, {}, book), Lines{text + "10.0.0.1-10.0.0.2"});
  EXPECT_EQ(outcome({range_set({spec("10.0.0.0/30"), spec("10.0.1.0/30")})}, {}, book),
            Lines{text + "10.0.0.1-10.0.0.2,10.0.1.1-10.0.1.2"});
  EXPECT_EQ(outcome({range_set({spec("10.1.2.0/24", "10.1.2.1", "10.1.2.1")})}, {}), Lines{text + "10.1.2.1-10.1.2.1"});
}

// [11-14]
TEST(Assign, EachRequestGoesToTheSetThatContainsIt) {
  EXPECT_EQ(outcome(kPlain, {"10.1.2.88"}), Lines{"0: 10.1.2.88/24 via 10.1.2.1"});
  const Lines both = {"0: 10.1.2.88/24 via 10.1.2.1", "1: 10.1.3.77/24 via 10.1.3.1"};
  EXPECT_EQ(outcome(kTwo, {"10.1.2.88", "10.1.3.77"}), both);
  EXPECT_EQ(outcome(kTwo, {"10.1.3.77", "10.1.2.88"}), both);
  const std::vector<RangeSet> dual = {range_set({spec("172.16.1.0/24"), spec("10.1.2.0/24")}),
                                      range_set({spec("2001:db8:1::/48")})};
  EXPECT_EQ(outcome(dual, {"10.1.2.88", "2001:db8:1::999"}),
            (Lines{"0: 10.1.2.88/24 via 10.1.2.1", "1: 2001:db8:1::999/48 via 2001:db8:1::1"}));
  EXPECT_EQ(outcome(kTwo, {"10.1.2.88", "10.1.2.77"}),
            (Lines{"0: 10.1.2.88/24 via 10.1.2.1", "1: 10.1.3.2/24 via 10.1.3.1",
                   "failed to allocate all requested IPs: 10.1.2.77"}));
}

TEST(Assign, NamesAllRequestsThatAreLeft) {
  EXPECT_EQ(outcome(kPlain, {"10.1.2.88", "2001:db8::1", "10.9.9.9"}),
            (Lines{"0: 10.1.2.88/24 via 10.1.2.1", "failed to allocate all requested IPs: 2001:db8::1 10.9.9.9"}));
}

// [103]
TEST(Assign, ThreeSetsGetTheirOwnRequests) {
  const std::vector<RangeSet> three = {kTwo[0], kTwo[1], range_set({spec("10.1.4.0/24")})};
  EXPECT_EQ(outcome(three, {"10.1.4.9", "10.1.2.9", "10.1.3.9"}),
            (Lines{"0: 10.1.2.9/24 via 10.1.2.1", "1: 10.1.3.9/24 via 10.1.3.1", "2: 10.1.4.9/24 via 10.1.4.1"}));
}

// [99]
TEST(Assign, RefusesTheGatewayEvenWhenItIsTaken) {
  Book book;
  book.taken = {address("10.1.2.1")};
  const Lines refused = {"failed to allocate for range 0: requested ip 10.1.2.1 is subnet's gateway"};
  EXPECT_EQ(outcome(kPlain, {"10.1.2.1"}), refused);
  EXPECT_EQ(outcome(kPlain, {"10.1.2.1"}, book), refused);
}

// [106, 107]
TEST(Assign, RefusesASecondAddressOfTheSet) {
  Book book;
  book.taken = {address("10.1.2.2")};
  book.held = addresses({"10.9.9.9", "10.1.2.2"});
  EXPECT_EQ(decide(kPlain, {}, book).refusal,
            (Error{ErrorCode::refused_by_configuration,
                   "failed to allocate for range 0: 10.1.2.2 has been allocated to dummy, duplicate allocation is not "
                   "allowed",
                   ""}));
  book.held = addresses({"10.9.9.9"});
  EXPECT_EQ(outcome(kPlain, {}, book), Lines{"0: 10.1.2.3/24 via 10.1.2.1"});
}

// docs/notes/host-local.md#h7
TEST(Assign, ARequestSkipsTheCheckForASecondAddress) {
  Book book;
  book.taken = {address("10.1.2.2")};
  book.held = addresses({"10.1.2.2"});
  EXPECT_EQ(outcome(kPlain, {"10.1.2.9"}, book), Lines{"0: 10.1.2.9/24 via 10.1.2.1"});
}

// [108, 109]
TEST(Assign, EachSetHasItsCursor) {
  Book book;
  book.cursors[0] = address("10.1.2.7");
  book.cursors[1] = address("10.9.9.9");
  EXPECT_EQ(outcome(kTwo, {}, book), (Lines{"0: 10.1.2.8/24 via 10.1.2.1", "1: 10.1.3.2/24 via 10.1.3.1"}));
}

// [110]
TEST(Assign, PassesOverWhatIsTaken) {
  Book book;
  book.taken = {address("10.1.2.2")};
  EXPECT_EQ(outcome(kPlain, {}, book), Lines{"0: 10.1.2.3/24 via 10.1.2.1"});
}

// [113]
TEST(Assign, ARefusalTellsWhatTheSetsBeforeGot) {
  Book book;
  book.taken = {address("10.0.0.2")};
  EXPECT_EQ(outcome({kPlain[0], range_set({spec("10.0.0.0/30")})}, {}, book),
            (Lines{"0: 10.1.2.2/24 via 10.1.2.1",
                   "failed to allocate for range 1: no IP addresses available in range set: 10.0.0.1-10.0.0.2"}));
}

TEST(Assign, AsksOnceWhatTheAskerHolds) {
  Book book;
  (void)decide(kTwo, {}, book);
  EXPECT_EQ(book.questions_held, 1);
  (void)decide(kTwo, {"10.1.2.9", "10.1.3.9"}, book);
  EXPECT_EQ(book.questions_held, 1);
}

TEST(Assign, AnErrorEndsTheDecision) {
  Book book;
  book.error = Error{ErrorCode::unavailable, "away", ""};
  EXPECT_EQ(assign(kPlain, {"dummy", {}}, book).error(), *book.error);
  EXPECT_EQ(assign(kPlain, {"dummy", addresses({"10.1.2.9"})}, book).error(), *book.error);
}

}  // namespace
}  // namespace croft::core::host_local
