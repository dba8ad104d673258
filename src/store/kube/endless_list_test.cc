// Lists of many pages, each small and right, as an API server sends that never comes to an end.

#include <memory>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"
#include "store/kube/form.h"
#include "store/kube/format/fake_digest_fixture.h"
#include "store/kube/kube_store.h"
#include "store/kube/node_addresses.h"
#include "store/kube/node_cidrs.h"

namespace croft::store {
namespace {

using testing::HasSubstr;

constexpr int kPage = 400;

/// Answers each list with that many objects, a page of kPage at a time.
class LongList final : public kube::Api {
 public:
  LongList(std::string kind, std::string version, std::string rest, int objects)
      : kind_(std::move(kind)), version_(std::move(version)), rest_(std::move(rest)), objects_(objects) {}
  [[nodiscard]] kube::Answer call(const kube::Request& request, Deadline) override {
    constexpr std::string_view kToken = "continue=";
    const auto token = request.path.find(kToken);
    int at = token == std::string::npos ? 0 : std::stoi(request.path.substr(token + kToken.size()));
    const int end = std::min(at + kPage, objects_);
    std::string items;
    for (; at < end; ++at) {
      items += fmt::format(R"({}{{"metadata":{{"name":"n{:09}","uid":"u","resourceVersion":"3"}},{}}})",
                           items.empty() ? "" : ",", at, fmt::format(fmt::runtime(rest_), at % 200, at % 250));
    }
    kube::Answer answer;
    answer.outcome = kube::Answer::Outcome::done;
    answer.http_status = 200;
    answer.body = fmt::format(
        R"({{"kind":"{}List","apiVersion":"{}","metadata":{{"resourceVersion":"9","continue":"{}"}},"items":[{}]}})",
        kind_, version_, end < objects_ ? std::to_string(end) : "", items);
    ++pages;
    return answer;
  }
  [[nodiscard]] kube::WatchAnswer watch(const std::string&, Deadline) override { return {}; }

  int pages = 0;

 private:
  const std::string kind_, version_, rest_;
  const int objects_;
};

constexpr int kEndless = 2'000'000'000;
constexpr const char* kCrd = "crd.projectcalico.org/v1";
constexpr const char* kPool = R"("spec":{{"cidr":"10.{}.{}.0/24","blockSize":26}})";
constexpr const char* kHandle = R"("spec":{{"handleID":"h.{}.{}","block":{{}}}})";

class EndlessLists : public testing::Test {
 protected:
  void serve(const char* kind, const char* rest, int objects) {
    auto api = std::make_unique<LongList>(kind, kCrd, rest, objects);
    api_ = api.get();
    store_ = make_kube_store(
        std::move(api),
        [](kube::Api&, LayoutCare, Deadline) -> Result<Layout> {
          Layout layout;
          layout.forms.push_back(kube::make_calico_form(wire::calico::ApiGroup::crd_v1,
                                                        {wire::kube::fake_digest, wire::kube::fake_digest}));
          return layout;
        },
        clock_);
  }
  [[nodiscard]] Deadline late() const { return Deadline::after(clock_.now(), std::chrono::minutes(5)); }
  [[nodiscard]] Result<int> walk(core::Kind kind) {
    int count = 0;
    TRY_VOID(store_->for_each(
        {kind, "", "", kListLimitMax}, [this] { return late(); },
        [&](Record&) -> Result<void> {
          ++count;
          return {};
        }));
    return count;
  }

  os::SystemClock clock_;
  std::unique_ptr<Store> store_;
  LongList* api_ = nullptr;
};

TEST_F(EndlessLists, OfPoolsAreGivenUpByWhoKeepsThem) {
  serve("IPPool", kPool, kEndless);
  const auto page = store_->list({core::Kind::pool, "", "", kListLimitMax}, late());
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, ErrorCode::corrupt);
  EXPECT_THAT(page.error().message, HasSubstr("more than 10000 objects, 10400 objects of"));
  EXPECT_LE(api_->pages, 27) << "and a question beside it";

  api_->pages = 0;
  const auto walked = walk(core::Kind::pool);
  ASSERT_FALSE(walked);
  EXPECT_THAT(walked.error().message, HasSubstr("more than 10000 objects"));
  EXPECT_EQ(api_->pages, 26);

  core::Missing missing;
  missing.lists.insert({core::Kind::pool, "", true});
  api_->pages = 0;
  EXPECT_FALSE(store_->read(missing, late())) << "as an ADD reads them";
  EXPECT_LE(api_->pages, 27);
}

/// Written short, held long.
TEST_F(EndlessLists, OfReservationsAreGivenUpByTheirCidrs) {
  std::string cidrs = "10.{}.{}.1";
  for (int i = 0; i < 99; ++i) cidrs += fmt::format(R"(","10.9.9.{})", i);
  serve("IPReservation", (R"("spec":{{"reservedCIDRs":[")" + cidrs + R"("]}})").c_str(), kEndless);
  const auto page = store_->list({core::Kind::reservation, "", "", kListLimitMax}, late());
  ASSERT_FALSE(page);
  EXPECT_THAT(page.error().message, HasSubstr("more than 500000 reserved CIDRs"));
  EXPECT_LE(api_->pages, 14);
}

TEST_F(EndlessLists, LargeOnesAreTaken) {
  serve("IPPool", kPool, 10'000);
  EXPECT_EQ(walk(core::Kind::pool).value(), 10'000);
  EXPECT_TRUE(store_->list({core::Kind::pool, "", "", kListLimitMax}, late()));
  serve("IPAMHandle", kHandle, 20'000);
  EXPECT_EQ(walk(core::Kind::handle).value(), 20'000);
  EXPECT_TRUE(store_->list({core::Kind::handle, "", "", kListLimitMax}, late()));
}

TEST(EndlessListsOfNodes, AreGivenUp) {
  const os::SystemClock clock;
  LongList api("Node", "v1", R"("spec":{{"podCIDR":"10.{}.{}.0/24"}})", kEndless);
  const auto cidrs = kube::list_node_cidrs(api, clock);
  ASSERT_FALSE(cidrs);
  EXPECT_THAT(cidrs.error().message, HasSubstr("more than 50000 objects"));
  EXPECT_EQ(api.pages, 126);
  api.pages = 0;
  EXPECT_FALSE(kube::list_node_addresses(api, clock));
  EXPECT_EQ(api.pages, 126);

  api.pages = 0;
  const auto late = kube::list_node_cidrs(api, clock, Deadline{std::chrono::nanoseconds(0)});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::deadline_exceeded);
  EXPECT_EQ(api.pages, 0);

  LongList many(
      "Node", "v1",
      R"("spec":{{"podCIDR":"10.{}.{}.0/24"}},"status":{{"addresses":[{{"type":"InternalIP","address":"10.9.9.9"}}]}})",
      5'000);
  EXPECT_EQ(kube::list_node_cidrs(many, clock).value().size(), 5'000);
  EXPECT_EQ(kube::list_node_addresses(many, clock).value().size(), 5'000);
}

}  // namespace
}  // namespace croft::store
