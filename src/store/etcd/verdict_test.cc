#include "store/etcd/verdict.h"

#include <gtest/gtest.h>

#include "store/etcd/client.h"

namespace croft::store::etcd {
namespace {

using os::GrpcCode;
using os::GrpcStatus;

GrpcStatus said(GrpcCode code, std::string message) { return {code, std::move(message), true, false}; }
GrpcStatus lost(GrpcCode code, bool surely_not_processed) { return {code, "lost", false, surely_not_processed}; }

struct Case {
  GrpcStatus status;
  ErrorCode of_read;
  ErrorCode of_write;
  bool read_again = false;
  bool write_again = false;
};

TEST(Verdict, OnlyWhatProvesThatNothingWasWrittenIsNotUnknown) {
  using enum ErrorCode;
  const std::vector<Case> cases = {
      // Refusals, in etcd's own words.
      {said(GrpcCode::invalid_argument, "etcdserver: request is too large"), storage_full, storage_full},
      {said(GrpcCode::invalid_argument, "etcdserver: duplicate key given in txn request"), invalid_argument,
       invalid_argument},
      {said(GrpcCode::invalid_argument, "etcdserver: user name is empty"), permission_denied, permission_denied},
      {said(GrpcCode::permission_denied, "etcdserver: permission denied"), permission_denied, permission_denied},
      {said(GrpcCode::unauthenticated, "etcdserver: invalid auth token"), permission_denied, permission_denied},
      {said(GrpcCode::out_of_range, "etcdserver: mvcc: required revision has been compacted"), conflict, conflict},
      {said(GrpcCode::out_of_range, "etcdserver: mvcc: required revision is a future revision"), invalid_argument,
       invalid_argument},
      {said(GrpcCode::resource_exhausted, "grpc: received message larger than max (2 vs. 1)"), storage_full,
       storage_full},
      {said(GrpcCode::resource_exhausted, "etcdserver: too many requests"), unavailable, unavailable, true, true},
      {said(GrpcCode::unimplemented, "unknown service"), invalid_argument, invalid_argument},
      // Said after the write may have been proposed.
      {said(GrpcCode::unavailable, "etcdserver: request timed out"), unavailable, unknown_outcome, true},
      {said(GrpcCode::unavailable, "etcdserver: leader changed"), unavailable, unknown_outcome, true},
      {said(GrpcCode::deadline_exceeded, "context deadline exceeded"), unavailable, unknown_outcome, true},
      {said(GrpcCode::resource_exhausted, "etcdserver: mvcc: database space exceeded"), storage_full, unknown_outcome},
      {said(GrpcCode::data_loss, "etcdserver: corrupt cluster"), corrupt, unknown_outcome, true},
      {said(GrpcCode::unknown, "?"), unavailable, unknown_outcome, true},
      {said(GrpcCode::internal, "?"), unavailable, unknown_outcome, true},
      {said(GrpcCode::cancelled, "?"), unavailable, unknown_outcome, true},
      {said(GrpcCode::aborted, "?"), unavailable, unknown_outcome, true},
      // Lost on the way.
      {lost(GrpcCode::unavailable, false), unavailable, unknown_outcome, true},
      {lost(GrpcCode::unavailable, true), unavailable, unavailable, true, true},
      {lost(GrpcCode::deadline_exceeded, false), deadline_exceeded, unknown_outcome, true},
      {lost(GrpcCode::deadline_exceeded, true), deadline_exceeded, deadline_exceeded, true, true},
      {lost(GrpcCode::internal, false), unavailable, unknown_outcome, true},
      {lost(GrpcCode::resource_exhausted, false), unavailable, unknown_outcome, true},
      {lost(GrpcCode::resource_exhausted, true), storage_full, storage_full},
      {lost(GrpcCode::unknown, false), unavailable, unknown_outcome, true},
  };
  for (const Case& c : cases) {
    const std::string what = c.status.message + " " + std::string(name_of(c.status.code));
    const Verdict read = verdict_on(c.status, false);
    const Verdict write = verdict_on(c.status, true);
    EXPECT_EQ(name_of(read.error.code), name_of(c.of_read)) << what;
    EXPECT_EQ(name_of(write.error.code), name_of(c.of_write)) << what;
    EXPECT_EQ(read.try_again, c.read_again) << what;
    EXPECT_EQ(write.try_again, c.write_again) << what;
    EXPECT_FALSE(write.try_again && write.error.code == unknown_outcome) << what;
    EXPECT_NE(read.error.message.find(c.status.message), std::string::npos) << "etcd's words are kept";
  }
}

TEST(Verdict, AnAnswerThatIsNoneSaysThatTheMemberIsBroken) {
  const Error garbage{ErrorCode::corrupt, "no TxnResponse", {}};
  EXPECT_TRUE(verdict_on_nonsense(garbage, false).try_again);
  EXPECT_EQ(verdict_on_nonsense(garbage, false).error.code, ErrorCode::unavailable);
  EXPECT_FALSE(verdict_on_nonsense(garbage, true).try_again);
  EXPECT_EQ(verdict_on_nonsense(garbage, true).error.code, ErrorCode::unknown_outcome);
  EXPECT_TRUE(verdict_on(lost(GrpcCode::internal, false), false).is_broken);
  EXPECT_TRUE(verdict_on(lost(GrpcCode::resource_exhausted, false), true).is_broken);
  EXPECT_FALSE(verdict_on(lost(GrpcCode::resource_exhausted, true), true).is_broken) << "the request was too large";
  EXPECT_FALSE(verdict_on(lost(GrpcCode::unavailable, false), false).is_broken);
}

TEST(Verdict, WhatCallersAskAbout) {
  const auto compacted = said(GrpcCode::out_of_range, "etcdserver: mvcc: required revision has been compacted");
  EXPECT_FALSE(is_no_space(verdict_on(compacted, false).error));
  const auto full = said(GrpcCode::resource_exhausted, "etcdserver: mvcc: database space exceeded");
  EXPECT_TRUE(is_no_space(verdict_on(full, true).error));
  EXPECT_TRUE(verdict_on(said(GrpcCode::unauthenticated, "etcdserver: invalid auth token"), true).log_in_again);
}

}  // namespace
}  // namespace croft::store::etcd
