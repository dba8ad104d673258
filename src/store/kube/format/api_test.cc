#include "store/kube/format/api.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time_text.h"

namespace croft::wire::kube {
namespace {

template <class T>
std::string refusal(const Result<T>& result) {
  if (result) return "accepted";
  EXPECT_EQ(result.error().code, ErrorCode::corrupt);
  return result.error().message;
}

TEST(KubeStatus, EveryMemberArrives) {
  const auto status = decode_status(R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
    "message":"ipamblocks \"b\" is invalid","reason":"Invalid","code":422,"details":{"name":"b","group":"g",
    "kind":"ipamblocks","uid":"u-1","retryAfterSeconds":3}})");
  ASSERT_TRUE(status);
  ApiStatus expected;
  expected.code = 422;
  expected.reason = "Invalid";
  expected.message = "ipamblocks \"b\" is invalid";
  expected.name = "b";
  expected.retry_after = std::chrono::seconds{3};
  EXPECT_EQ(*status, expected);
}

TEST(KubeStatus, WhatIsNoneIsNone) {
  for (const std::string_view text :
       {"", "404 page not found\n", "{}", "[]", "null", "7", R"({"kind":"Status"})",
        R"({"kind":"Pod","apiVersion":"v1","code":404})", R"({"kind":"Status","apiVersion":"v1")"}) {
    EXPECT_FALSE(decode_status(text)) << text;
  }
}

TEST(KubeStatus, OddMembersHideNothingAndAllIsBounded) {
  const auto status = decode_status(R"({"kind":"Status","apiVersion":"v1","code":409,"reason":7,"message":")" +
                                    std::string(100'000, 'm') + R"(","details":{"name":"n","retryAfterSeconds":-1}})");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 409);
  EXPECT_EQ(status->reason, "");
  EXPECT_EQ(status->message.size(), 4096U);
  EXPECT_EQ(status->name, "n");
  EXPECT_EQ(status->retry_after, std::nullopt);
}

constexpr std::string_view kObject =
    R"({"kind":"IPAMBlock","apiVersion":"crd.projectcalico.org/v1","metadata":{"name":"10-0-0-0-26","namespace":"n",)"
    R"("uid":"u-1","resourceVersion":"42","deletionTimestamp":"2026-01-15T10:00:00Z","annotations":{"a":"b"},"labels":null},)"
    R"("spec":{"cidr":"10.0.0.0/26"}})";

TEST(KubeObject, HasItsMetadataAndItsValue) {
  auto object = decode_object(kObject);
  ASSERT_TRUE(object) << object.error().message;
  const ApiObject moved = *std::move(object);
  EXPECT_EQ(moved.meta, (ApiMeta{"10-0-0-0-26", "n", "u-1", "42", parse_rfc3339("2026-01-15T10:00:00Z").value()}));
  const auto kind = moved.value.first_child();
  ASSERT_TRUE(kind);
  EXPECT_EQ(kind->text(), "IPAMBlock");
}

TEST(KubeObject, WithoutWhatEveryoneNeedsIsDamage) {
  EXPECT_EQ(refusal(decode_object("{}")), "an object of the API server: it has no metadata");
  EXPECT_EQ(refusal(decode_object(R"({"metadata":{"resourceVersion":"1"}})")),
            "an object of the API server: metadata.name is missing");
  EXPECT_EQ(refusal(decode_object(R"({"metadata":{"name":"a"}})")),
            "an object of the API server: metadata.resourceVersion is missing");
  EXPECT_EQ(refusal(decode_object(R"({"metadata":{"name":7}})")),
            "an object of the API server: metadata.name: an integer (7) where a string is wanted");
  EXPECT_EQ(refusal(decode_object(R"({"metadata":{"Name":"a","resourceVersion":"1"}})")),
            "an object of the API server: metadata.name is missing");
  EXPECT_NE(refusal(decode_object("<html>")), "accepted");
  EXPECT_NE(refusal(decode_object(std::string(kApiAnswerBytesMax, ' ') + "{}")), "accepted");
}

/// Who deletes a pod chooses when (terminationGracePeriodSeconds): only whether it is set counts.
TEST(KubeObject, ATimeOfDeletionThatCannotBeHeldIsSetAllTheSame) {
  for (const char* time : {"2312-02-07T00:26:40Z", "9999-12-31T23:59:59Z", "soon"}) {
    const auto object = decode_object(
        fmt::format(R"({{"metadata":{{"name":"a","resourceVersion":"1","deletionTimestamp":"{}"}}}})", time));
    ASSERT_TRUE(object) << object.error().message;
    EXPECT_EQ(object->meta.deletion_timestamp, WallTime::max()) << time;
  }
}

TEST(KubeList, APageHasItsPlaceAndItsItems) {
  const std::string text =
      R"({"kind":"IPAMBlockList","apiVersion":"g/v1","metadata":{"resourceVersion":"100","continue":"abc",)"
      R"("remainingItemCount":3},"items":[)" +
      std::string(kObject) + "," + R"({"metadata":{"name":"b","uid":"u-2","resourceVersion":"43"},"spec":{"x":1}})" +
      "]}";
  const ApiListOf of{"g/v1", "IPAMBlock"};
  const auto page = decode_list(text, of);
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->resource_version, "100");
  EXPECT_EQ(page->continue_token, "abc");
  ASSERT_EQ(page->items.size(), 2U);
  EXPECT_EQ(page->items[0], kObject);
  const auto item = decode_item(page->items[1], of);
  ASSERT_TRUE(item) << item.error().message;
  EXPECT_EQ(item->meta.name, "b");
  EXPECT_EQ(item->meta.deletion_timestamp, std::nullopt);
  const auto metadata = item->value.first_child();
  ASSERT_TRUE(metadata && metadata->next_sibling());
  EXPECT_EQ(metadata->next_sibling()->first_child()->integer(), 1);
}

TEST(KubeList, MayBeEmptyButNotSomethingElse) {
  const ApiListOf kPods{"v1", "Pod"};
  for (const std::string_view items : {"[]", "null"}) {
    const auto page = decode_list(
        R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":)" + std::string(items) + "}",
        kPods);
    ASSERT_TRUE(page) << page.error().message;
    EXPECT_TRUE(page->items.empty());
    EXPECT_TRUE(page->continue_token.empty());
  }
  EXPECT_EQ(
      refusal(decode_list(R"({"kind":"Status","apiVersion":"v1","status":"Success","items":[]})", kPods)),
      "a list of the API server: asked for was the kind PodList of v1, and it is of the kind \"Status\" of \"v1\"");
  EXPECT_EQ(refusal(decode_list(R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"}})", kPods)),
            "a list of the API server: it is no JSON, is cut off or has no items");
  EXPECT_EQ(refusal(decode_list(R"({"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]})", kPods)),
            "a list of the API server: metadata.resourceVersion is missing");
  EXPECT_NE(refusal(decode_list("[]", kPods)), "accepted");
  EXPECT_NE(refusal(decode_list("", kPods)), "accepted");
}

TEST(KubeList, OfWhichAPartIsMissingIsNone) {
  const ApiListOf kPods{"v1", "Pod"};
  const std::string whole = R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[)"
                            R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1"}}]})";
  ASSERT_TRUE(decode_list(whole, kPods));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(decode_list(whole.substr(0, size), kPods)) << size;
  EXPECT_FALSE(decode_list(whole + "}", kPods));
}

TEST(KubeList, AnItemWithoutWhatEveryoneNeedsIsDamage) {
  const ApiListOf kPods{"v1", "Pod"};
  EXPECT_EQ(refusal(decode_item(R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1"}})", kPods)),
            "accepted");
  EXPECT_EQ(refusal(decode_item(R"({"metadata":{"resourceVersion":"1"}})", kPods)),
            "an object of the API server: metadata.name is missing");
  for (const char* none :
       {R"({"metadata":{"name":"a","namespace":"b"}})", "7", "{]", R"({"metadata":{"name":"\q"}})"}) {
    EXPECT_NE(refusal(decode_item(none, kPods)), "accepted") << none;
  }
}

TEST(KubeList, OfNamesOnlyIsTakenFromWhoWasAskedForIt) {
  constexpr std::string_view kNames =
      R"({"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[]})";
  EXPECT_FALSE(decode_list(kNames, {"v1", "Pod"}));
  EXPECT_TRUE(decode_list(kNames, {"v1", "Pod", true}));
}

TEST(KubeEvent, EveryType) {
  using Type = ApiEvent::Type;
  for (const auto& [text, type] : std::vector<std::pair<std::string, Type>>{
           {"ADDED", Type::added}, {"MODIFIED", Type::modified}, {"DELETED", Type::deleted}}) {
    auto decoded = decode_event(R"({"type":")" + text + R"(","object":)" + std::string(kObject) + "}");
    ASSERT_TRUE(decoded) << decoded.error().message;
    const ApiEvent event = *std::move(decoded);
    EXPECT_EQ(event.type, type);
    ASSERT_TRUE(event.object);
    EXPECT_EQ(event.object->meta.name, "10-0-0-0-26");
    EXPECT_EQ(event.object->value.first_child()->text(), "IPAMBlock");
    EXPECT_FALSE(event.is_too_old());
  }
}

TEST(KubeEvent, BookmarksTellThePlace) {
  const auto event = decode_event(
      R"({"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"77","creationTimestamp":null}}})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->object->meta.resource_version, "77");
}

TEST(KubeEvent, AnErrorHasItsStatus) {
  const auto event = decode_event(
      R"({"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","reason":"Expired","code":410,"message":"too old resource version"}})");
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_TRUE(event->is_too_old());
  EXPECT_FALSE(event->object);
  const auto other = decode_event(R"({"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":500}})");
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->is_too_old());
  EXPECT_EQ(other->status->code, 500);
}

TEST(KubeEvent, WhatIsNoneIsDamage) {
  for (const std::string_view text :
       {"{}", "[]", "x", R"({"type":"ADDED"})", R"({"type":"WHATEVER","object":{}})", R"({"type":"ERROR","object":{}})",
        R"({"type":"ADDED","object":null})", R"({"type":"BOOKMARK","object":{"metadata":{}}})",
        R"({"type":7,"object":{"metadata":{"name":"a","resourceVersion":"1"}}})"}) {
    EXPECT_NE(refusal(decode_event(text)), "accepted") << text;
  }
}

TEST(KubeWatchLines, HoweverTheBytesCome) {
  const std::string text = "{\"a\":1}\n\n \r\n{\"b\":2}\r\nrest";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    WatchLines lines;
    std::vector<std::string> seen;
    for (std::size_t at = 0; at < text.size(); at += step) {
      lines.add(std::string_view(text).substr(at, step));
      for (;;) {
        const auto line = lines.next();
        ASSERT_TRUE(line);
        if (!*line) break;
        seen.emplace_back(**line);
      }
    }
    EXPECT_EQ(seen, (std::vector<std::string>{"{\"a\":1}", "{\"b\":2}\r"})) << step;
    EXPECT_TRUE(lines.has_rest());
  }
  WatchLines whole;
  whole.add("x\n");
  EXPECT_TRUE(whole.next().value());
  EXPECT_FALSE(whole.next().value());
  EXPECT_FALSE(whole.has_rest());
}

TEST(KubeWatchLines, AreBounded) {
  WatchLines lines(10);
  lines.add("0123456789\n");
  EXPECT_EQ(lines.next().value(), "0123456789");
  lines.add("0123456789");
  EXPECT_EQ(lines.next().value(), std::nullopt);
  lines.add("x");
  EXPECT_EQ(lines.next().error().code, ErrorCode::corrupt);
  lines.add("\n");
  EXPECT_EQ(lines.next().error().code, ErrorCode::corrupt);
  WatchLines long_line(10);
  long_line.add("0123456789x\n");
  EXPECT_EQ(long_line.next().error().code, ErrorCode::corrupt);
}

constexpr ApiResource kBlocks{"crd.projectcalico.org", "v1", "ipamblocks"};
constexpr ApiResource kPods{"", "v1", "pods"};

TEST(KubeRequests, Paths) {
  EXPECT_EQ(collection_path(kBlocks).value(), "/apis/crd.projectcalico.org/v1/ipamblocks");
  EXPECT_EQ(collection_path(kPods).value(), "/api/v1/pods");
  EXPECT_EQ(object_path(kPods, "kube-system", "a.b").value(), "/api/v1/namespaces/kube-system/pods/a.b");
  EXPECT_EQ(object_path(kBlocks, "", "10-0-0-0-26").value(), "/apis/crd.projectcalico.org/v1/ipamblocks/10-0-0-0-26");
  EXPECT_EQ(object_path(kBlocks, "", "a:b?#").value(), "/apis/crd.projectcalico.org/v1/ipamblocks/a%3Ab%3F%23");
  for (const std::string& bad : {std::string(), std::string("."), std::string(".."), std::string("a/b"),
                                 std::string("a%2fb"), std::string(254, 'x'), std::string("a\0b", 3)}) {
    EXPECT_EQ(object_path(kBlocks, "", bad).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(object_path(kPods, bad, "a").has_value(), bad.empty());  // of no namespace
  }
}

TEST(KubeRequests, Lists) {
  EXPECT_EQ(list_path("/c", {}), "/c");
  ApiListQuery query;
  query.limit = 500;
  query.resource_version = "0";
  query.select.label_selector = "a in (b,c)";
  EXPECT_EQ(list_path("/c", query),
            "/c?labelSelector=a%20in%20%28b%2Cc%29&limit=500&resourceVersion=0&resourceVersionMatch=NotOlderThan");
  query.select = {"", "spec.nodeName=n"};
  query.continue_token = "a+/=";  // the token has the version; the server refuses both
  EXPECT_EQ(list_path("/c", query), "/c?fieldSelector=spec.nodeName%3Dn&limit=500&continue=a%2B%2F%3D");
}

TEST(KubeRequests, Watches) {
  EXPECT_EQ(watch_path("/c", {}), "/c?watch=1&allowWatchBookmarks=true");
  ApiWatchQuery query;
  query.resource_version = "42";
  EXPECT_EQ(watch_path("/c", query), "/c?watch=1&allowWatchBookmarks=true&resourceVersion=42");
}

TEST(KubeRequests, DeleteOptions) {
  EXPECT_EQ(encode_delete_options({}), R"({"kind":"DeleteOptions","apiVersion":"v1"})");
  EXPECT_EQ(encode_delete_options({"u", "7"}),
            R"({"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u","resourceVersion":"7"}})");
  EXPECT_EQ(encode_delete_options({"u", ""}),
            R"({"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"}})");
}

// ---------------------------------------------------------------- another than was asked for

constexpr const char* kPod = R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"shop",)"
                             R"("resourceVersion":"7"}})";

using testing::ElementsAre;

std::vector<std::string> texts_in(std::string_view text) {
  std::vector<std::string> found;
  const std::size_t length = each_slice(text, [&](std::string_view name, std::string_view value) {
    const std::size_t whole = length_of_value(value);
    found.push_back((name.empty() ? "" : std::string(name) + "=") + std::string(value.substr(0, whole)));
    return whole;
  });
  if (length == text.npos) found.emplace_back("broken");
  return found;
}

TEST(JsonSlices, AnObjectAndAListAreCutIntoTheirValues) {
  EXPECT_THAT(texts_in(R"({"a": 1, "b":{"c":"}"} ,"d":[1,[2]]} )"), ElementsAre("a=1", R"(b={"c":"}"})", "d=[1,[2]]"));
  EXPECT_THAT(texts_in(R"([null, "a\"]", -1.5e3])"), ElementsAre("null", R"("a\"]")", "-1.5e3"));
  EXPECT_THAT(texts_in(R"(["\\","x"])"), ElementsAre(R"("\\")", R"("x")")) << "an escaped backslash ends nothing";
  EXPECT_THAT(texts_in("{}"), ElementsAre());
}

TEST(JsonSlices, WhatIsCutOffOrNoneHasNoEnd) {
  const std::string whole = R"({"a":[1,{"b":"c"}],"d":"e"})";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(texts_in(whole.substr(0, size)), testing::Contains("broken")) << size;
  }
  for (const char* none : {"", "7", "x", "[1 2]", "{1:2}", R"({"a" 1})", "[,]"}) {
    EXPECT_THAT(texts_in(none), testing::Contains("broken")) << none;
  }
}

TEST(JsonSlices, WhatIsInsideIsGoneThroughOnce) {
  const std::string_view text = R"({"items":[1,2],"z":3} x)";
  int count = 0;
  std::string last;
  const std::size_t length = each_slice(text, [&](std::string_view name, std::string_view value) {
    last = name;
    if (name != "items") return length_of_value(value);
    return each_slice(value, [&](std::string_view, std::string_view one) {
      ++count;
      return length_of_value(one);
    });
  });
  EXPECT_EQ(count, 2);
  EXPECT_EQ(last, "z");
  EXPECT_EQ(text.substr(length), " x");
}

TEST(JsonSlices, OnlyWhatIsKeptIsCopied) {
  static constexpr std::array kState = {Kept{"running"}};
  static constexpr std::array kContainer = {Kept{"state", kState}};
  static constexpr std::array kKept = {Kept{"name"}, Kept{"containers", kContainer}};
  EXPECT_EQ(
      with_only(R"({"x":{"name":1},"name":"a","containers":[{"image":"i","state":{"running":{"at":1},"w":2}},{}]})",
                kKept),
      R"({"name":"a","containers":[{"state":{"running":{"at":1}}},{}]})");
  EXPECT_EQ(with_only(R"({"containers":null,"name":{"b":1}})", kKept), R"({"containers":null,"name":{"b":1}})");
  EXPECT_EQ(with_only(R"({"x":1})", kKept), "{}");
  EXPECT_EQ(with_only(R"({"x":1)", kKept), R"({"x":1)") << "for the reader to say what is wrong";
}

}  // namespace

}  // namespace croft::wire::kube
