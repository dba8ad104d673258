#include "store/kube/protobuf_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::store::kube {
namespace {

using testing::HasSubstr;

/// A NodeList of one node "oak" of resourceVersion 7, as an API server sends it.
std::string nodes_in_protobuf() {
  const std::string meta(
      "\x0a\x03oak\x32\x01"
      "7",
      8);
  const std::string node = std::string("\x0a\x08", 2) + meta;
  const std::string list = std::string(
                               "\x0a\x03\x12\x01"
                               "9\x12\x0a",
                               7) +
                           node;
  const std::string type("\x0a\x02v1\x12\x08NodeList", 14);
  return std::string("k8s\0\x0a\x0e", 6) + type + std::string("\x12\x11", 2) + list;
}

struct Asked {
  std::vector<std::string> accepts;
  std::string body = nodes_in_protobuf();
  Answer::Outcome outcome = Answer::Outcome::done;
  std::string reason = {};
};

class OneAnswer final : public Api {
 public:
  explicit OneAnswer(Asked& asked) : asked_(asked) {}
  [[nodiscard]] Answer call(const Request& request, Deadline) override {
    asked_.accepts.push_back(request.accept);
    Answer answer;
    answer.outcome = asked_.outcome;
    answer.body = asked_.body;
    answer.status.reason = asked_.reason;
    return answer;
  }
  [[nodiscard]] WatchAnswer watch(const std::string&, Deadline) override { return {}; }

 private:
  Asked& asked_;
};

Request get(const std::string& path) {
  Request request;
  request.path = path;
  return request;
}

TEST(ProtobufLists, ListsOfBuiltinKindsAreAskedForInProtobufAndComeAsJson) {
  Asked asked;
  const auto api = lists_in_protobuf(std::make_unique<OneAnswer>(asked));
  for (const char* path : {"/api/v1/nodes", "/api/v1/nodes?limit=500", "/api/v1/namespaces?limit=1", "/api/v1/services",
                           "/apis/networking.k8s.io/v1/ipaddresses", "/apis/networking.k8s.io/v1/servicecidrs"}) {
    const Answer answer = api->call(get(path), {});
    EXPECT_THAT(answer.body, HasSubstr(R"("metadata":{"name":"oak","resourceVersion":"7")")) << path;
    EXPECT_THAT(asked.accepts.back(), HasSubstr("protobuf")) << path;
  }
  const std::vector<Request> both = {get("/api/v1/nodes/oak"), get("/api/v1/nodes")};
  asked.accepts.clear();
  const auto answers = api->call_all(both, {});
  EXPECT_THAT(asked.accepts, testing::ElementsAre("application/json", HasSubstr("protobuf")));
  EXPECT_EQ(answers[0].body, asked.body);
  EXPECT_THAT(answers[1].body, HasSubstr("oak"));
}

TEST(ProtobufLists, AllElseGoesAsItIs) {
  Asked asked;
  const auto api = lists_in_protobuf(std::make_unique<OneAnswer>(asked));
  for (const char* path :
       {"/api/v1/nodes/oak", "/api/v1/pods", "/apis/crd.projectcalico.org/v1/ipamblocks", "/api/v1"}) {
    EXPECT_EQ(api->call(get(path), {}).body, asked.body) << path;
    EXPECT_EQ(asked.accepts.back(), "application/json") << path;
  }
  Request names = get("/api/v1/nodes");
  names.accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
  EXPECT_EQ(api->call(names, {}).body, asked.body);
  Request patch = get("/api/v1/nodes");
  patch.method = Request::Method::post;
  EXPECT_EQ(api->call(patch, {}).body, asked.body);
}

/// An API server that is asked for protobuf refuses in protobuf.
TEST(ProtobufLists, WhatIsRefusedIsAskedForInJsonToKnowWhy) {
  Asked asked;
  const auto api = lists_in_protobuf(std::make_unique<OneAnswer>(asked));
  asked.outcome = Answer::Outcome::refused;
  static_cast<void>(api->call(get("/api/v1/nodes"), {}));
  EXPECT_THAT(asked.accepts, testing::ElementsAre(HasSubstr("protobuf"), "application/json"));
  asked.accepts.clear();
  Request pods = get("/api/v1/pods");
  pods.accept = "application/vnd.kubernetes.protobuf, application/json";
  static_cast<void>(api->call(pods, {}));
  EXPECT_THAT(asked.accepts, testing::ElementsAre(HasSubstr("protobuf"), "application/json"));
  asked.accepts.clear();
  asked.reason = "Forbidden";
  static_cast<void>(api->call(get("/api/v1/nodes"), {}));
  EXPECT_EQ(asked.accepts.size(), 1U);
}

TEST(ProtobufLists, WhatCannotBeReadIsNoAnswer) {
  Asked asked;
  const auto api = lists_in_protobuf(std::make_unique<OneAnswer>(asked));
  asked.body.resize(asked.body.size() - 3);
  const Answer answer = api->call(get("/api/v1/nodes"), {});
  EXPECT_EQ(answer.outcome, Answer::Outcome::not_done);
  EXPECT_EQ(answer.error.code, ErrorCode::corrupt);
  EXPECT_EQ(answer.body, "");
  asked.outcome = Answer::Outcome::refused;
  EXPECT_EQ(api->call(get("/api/v1/nodes"), {}).outcome, Answer::Outcome::refused);
}

}  // namespace
}  // namespace croft::store::kube
