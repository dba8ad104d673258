// The parts of the client that need no server.

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "os/files.h"
#include "os/scratch_directory.h"
#include "store/kube/client.h"

namespace croft::store::kube {
namespace {

using namespace std::chrono_literals;
using Outcome = Answer::Outcome;
using Next = Verdict::Next;

std::vector<os::Http2Header> answered(const std::string& status, const std::string& retry_after = "") {
  std::vector<os::Http2Header> headers{{":status", status}};
  if (!retry_after.empty()) headers.push_back({"retry-after", retry_after});
  return headers;
}

const Request kRead{Request::Method::get, "/r?continue=x", {}};
const Request kWrite{Request::Method::put, "/w", "{}"};

TEST(KubeVerdict, RetryAfterInAnyForm) {
  const auto wait = [](const std::string& status, const std::string& header) {
    const Verdict verdict = verdict_on_answer(kWrite, answered(status, header), "");
    return verdict.next == Next::wait ? std::optional(verdict.wait) : std::nullopt;
  };
  EXPECT_EQ(wait("429", "7"), 7s);
  EXPECT_EQ(wait("429", "0"), 0s);
  EXPECT_EQ(wait("429", ""), 1s);
  EXPECT_EQ(wait("429", "Fri, 31 Dec 1999 23:59:59 GMT"), 1s);
  EXPECT_EQ(wait("429", "-5"), 1s);
  EXPECT_EQ(wait("429", "999999999"), 999999999s);
  EXPECT_EQ(wait("429", "99999999999999999999"), 1s);
  EXPECT_EQ(wait("503", "2"), 2s);
  EXPECT_EQ(wait("503", ""), std::nullopt);
  EXPECT_EQ(wait("500", "2"), std::nullopt);
}

TEST(KubeVerdict, NonsenseProvesNothing) {
  for (const std::string status : {"", "x", "100", "199", "301", "600", "999"}) {
    const Verdict read = verdict_on_answer(kRead, answered(status), "");
    EXPECT_EQ(read.answer.outcome, Outcome::not_done) << status;
    EXPECT_EQ(read.next, Next::elsewhere);
    EXPECT_TRUE(read.server_is_bad);
    EXPECT_EQ(read.answer.error.code, ErrorCode::unavailable);
    EXPECT_EQ(verdict_on_answer(kWrite, answered(status), "").answer.outcome, Outcome::unknown) << status;
  }
}

TEST(KubeVerdict, APageOfSomebodyElseIsNoAnswer) {
  const auto told = [](const Request& request, const std::string& status, const std::string& type,
                       const std::string& body) {
    auto headers = answered(status);
    if (!type.empty()) headers.push_back({"content-type", type});
    return verdict_on_answer(request, headers, body);
  };
  Request removal{Request::Method::delete_object, "/d", "{}"};
  const std::string html = "<html>log in</html>";
  for (const auto& [status, type, body] :
       std::vector<std::array<std::string, 3>>{{"200", "text/html; charset=utf-8", html},
                                               {"200", "", html},
                                               {"200", "text/plain", "ok"},
                                               {"302", "text/html", ""},
                                               {"404", "text/html", html},
                                               {"404", "text/plain", "default backend - 404"},
                                               {"404", "application/json", "{}"},
                                               {"404", "", ""},
                                               {"409", "text/html", html},
                                               {"410", "text/html", html},
                                               {"422", "text/html", html}}) {
    SCOPED_TRACE(status + " " + type + " " + body);
    const Verdict read = told(kRead, status, type, body);
    EXPECT_EQ(read.answer.outcome, Outcome::not_done);
    EXPECT_EQ(read.answer.error.code, ErrorCode::unavailable);
    EXPECT_NE(read.answer.error.message.find("not the API server"), std::string::npos) << read.answer.error.message;
    EXPECT_TRUE(read.server_is_bad);
    for (const Request& write : {kWrite, removal}) {
      EXPECT_EQ(told(write, status, type, body).answer.outcome, Outcome::unknown);
      EXPECT_EQ(told(write, status, type, body).answer.error.code, ErrorCode::unknown_outcome);
    }
  }
  // A group that is not served, and what is damaged in an answer of the API's own.
  EXPECT_EQ(told(kRead, "404", "text/plain; charset=utf-8", "404 page not found\n").answer.outcome, Outcome::refused);
  EXPECT_EQ(told(kRead, "200", "application/json", "{\"a\":").answer.outcome, Outcome::done);
  EXPECT_EQ(told(kRead, "403", "text/html", html).answer.outcome, Outcome::refused);
  const Verdict gibberish = verdict_on_failure(kRead, {{ErrorCode::corrupt, "does not speak HTTP/2", {}}, false});
  EXPECT_EQ(gibberish.answer.error.code, ErrorCode::unavailable);
}

/// Reviews and TokenRequests: whether the server has processed one is nobody's question.
TEST(KubeVerdict, WhatTheServerKeepsNothingOfIsNeverWritten) {
  Request review{Request::Method::post, "/reviews", "{}"};
  review.keeps_nothing = true;
  const Verdict lost = verdict_on_failure(review, {{ErrorCode::unavailable, "closed the connection", {}}, false});
  for (const Verdict& verdict : {lost, verdict_on_answer(review, answered("500"), "")}) {
    EXPECT_NE(verdict.answer.outcome, Outcome::unknown);
    EXPECT_EQ(verdict.answer.error.code, ErrorCode::unavailable);
    EXPECT_EQ(verdict.answer.error.message.find("written"), std::string::npos) << verdict.answer.error.message;
    EXPECT_EQ(verdict.next, Next::elsewhere);
  }
}

TEST(KubeVerdict, WordsOfOthersAreMadeHarmless) {
  const Verdict verdict = verdict_on_answer(kRead, answered("403"), "\x1b[31mproxy says no\r\nand more");
  EXPECT_EQ(verdict.answer.outcome, Outcome::refused);
  EXPECT_EQ(verdict.answer.error.message, "GET /r: \\x1b[31mproxy says no (HTTP 403)");
}

TEST(KubeVerdict, AFailureBeforeAnybodySawItIsNoOutcome) {
  for (const ErrorCode code : {ErrorCode::unavailable, ErrorCode::deadline_exceeded, ErrorCode::corrupt}) {
    const Verdict verdict = verdict_on_failure(kWrite, {{code, "m", {}}, true});
    EXPECT_EQ(verdict.answer.outcome, Outcome::not_done);
    EXPECT_EQ(verdict.next, Next::elsewhere);
    EXPECT_EQ(verdict_on_failure(kWrite, {{code, "m", {}}, false}).answer.outcome, Outcome::unknown);
    EXPECT_EQ(verdict_on_failure(kWrite, {{code, "m", {}}, false}).next, Next::end);
  }
  EXPECT_EQ(verdict_on_failure(kWrite, {{ErrorCode::invalid_argument, "too large", {}}, true}).next, Next::end);
}

TEST(KubeAccessFile, YamlAndJsonBesideTheirFiles) {
  const os::ScratchDirectory scratch;
  const std::string file = scratch.file("config");
  const std::string yaml =
      "current-context: c\nclusters: [{name: k, cluster: {server: 'https://10.0.0.1', certificate-authority: "
      "ca.crt}}]\n"
      "contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {tokenFile: t}}]\n";
  ASSERT_TRUE(os::replace_file_durably(file, yaml, os::FileMode::readable_by_all));
  const auto access = read_kubeconfig(file, "");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->ca.file, scratch.file("ca.crt"));
  EXPECT_EQ(access->token_file, scratch.file("t"));
  EXPECT_NE(read_kubeconfig(file, "x").error().message.find(file), std::string::npos);
  EXPECT_EQ(read_kubeconfig(scratch.file("none"), "").error().code, ErrorCode::not_found);
}

TEST(KubeAccessFile, ASecretIsForNobodyElse) {
  const os::ScratchDirectory scratch;
  const std::string file = scratch.file("config");
  const std::string json =
      R"({"current-context":"c","clusters":[{"name":"k","cluster":{"server":"https://10.0.0.1","certificate-authority":"ca"}}],)"
      R"("contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],"users":[{"name":"u","user":{"token":"t"}}]})";
  ASSERT_TRUE(os::replace_file_durably(file, json, os::FileMode::readable_by_all));
  EXPECT_EQ(read_kubeconfig(file, "").error().code, ErrorCode::permission_denied);
  ASSERT_TRUE(os::replace_file_durably(file, json));
  EXPECT_EQ(read_kubeconfig(file, "")->token, "t");
}

}  // namespace
}  // namespace croft::store::kube
