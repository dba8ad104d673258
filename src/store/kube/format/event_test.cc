#include "store/kube/format/event.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::wire::kube {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Event, IsAnEventOfTheCoreGroup) {
  Event event;
  event.name = "web-0.1f";
  event.regarding = {"v1", "Pod", "shop", "web-0", "5f0c"};
  event.reason = "FailedAddressAssignment";
  event.message = "no \"IPv4\" address\npool a: full";
  event.component = "croft-agent";
  event.host = "node-a";
  event.at = WallTime(std::chrono::milliseconds(1'790'000'000'250));
  EXPECT_EQ(encode_event(event),
            R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"web-0.1f","namespace":"shop"},)"
            R"("involvedObject":{"apiVersion":"v1","kind":"Pod","namespace":"shop","name":"web-0","uid":"5f0c"},)"
            R"("type":"Warning","reason":"FailedAddressAssignment","message":"no \"IPv4\" address\npool a: full",)"
            R"("source":{"component":"croft-agent","host":"node-a"},"firstTimestamp":"2026-09-21T14:13:20Z",)"
            R"("lastTimestamp":"2026-09-21T14:13:20Z","count":1,"reportingComponent":"croft-agent",)"
            R"("reportingInstance":"node-a"})");
  event.regarding.uid.clear();
  EXPECT_THAT(encode_event(event), Not(HasSubstr("uid")));
  event.message = std::string(5000, 'x');
  EXPECT_LT(encode_event(event).size(), 1700U);
}

TEST(Event, OfWhatIsInNoNamespaceIsInDefault) {
  Event event;
  event.name = "10.96.0.9.1f";
  event.regarding = {"networking.k8s.io/v1", "IPAddress", "", "10.96.0.9", ""};
  event.type = Event::Type::normal;
  event.reason = "ClusterIPLeaked";
  event.action = "ClusterIPAllocation";
  event.component = "croft-controller";
  EXPECT_EQ(encode_event(event),
            R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"10.96.0.9.1f","namespace":"default"},)"
            R"("involvedObject":{"apiVersion":"networking.k8s.io/v1","kind":"IPAddress","name":"10.96.0.9"},)"
            R"("type":"Normal","reason":"ClusterIPLeaked","source":{"component":"croft-controller"},)"
            R"("firstTimestamp":"1970-01-01T00:00:00Z","lastTimestamp":"1970-01-01T00:00:00Z","count":1,)"
            R"("action":"ClusterIPAllocation","reportingComponent":"croft-controller"})");
}

TEST(Event, ALongTextIsCutBetweenCharacters) {
  EXPECT_EQ(cut_text("short", 5), "short");
  EXPECT_EQ(cut_text("longer", 5), "lo…");
  EXPECT_EQ(cut_text("äöüß", 8), "äöüß");
  EXPECT_EQ(cut_text("äöüßx", 8), "äö…");
  const std::string continuation(100, '\x80');  // no UTF-8 at all
  EXPECT_EQ(cut_text(continuation, 10), "…");
}

}  // namespace
}  // namespace croft::wire::kube
