#include "store/cached/shared_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::store {
namespace {

core::Key key(const std::string& name) { return {core::Kind::block, name}; }

TEST(SharedKeys, AreInOrderAndEachOnce) {
  SharedKeys keys;
  for (const char* name : {"b", "c", "a", "b"}) keys.insert(key(name));
  EXPECT_THAT(*keys.list(), testing::ElementsAre(key("a"), key("b"), key("c")));
  keys.erase(key("b"));
  keys.erase(key("none"));
  EXPECT_THAT(*keys.list(), testing::ElementsAre(key("a"), key("c")));
}

TEST(SharedKeys, AListThatWasGivenOutStaysAsItWas) {
  SharedKeys keys;
  keys.insert(key("a"));
  const core::KeyList before = keys.list();
  keys.insert(key("b"));
  EXPECT_THAT(*before, testing::ElementsAre(key("a")));
  EXPECT_THAT(*keys.list(), testing::ElementsAre(key("a"), key("b")));
}

TEST(SharedKeys, AreNotCopiedWhileNobodyHoldsThem) {
  SharedKeys keys;
  keys.insert(key("a"));
  core::KeyList held = keys.list();
  const auto* where = held.get();
  keys.insert(key("b"));
  held.reset();
  EXPECT_EQ(keys.list().get(), where);
  EXPECT_THAT(*keys.list(), testing::ElementsAre(key("a"), key("b")));
}

TEST(SharedKeys, ManyChangesThatNobodyAsksForDoNotPileUp) {
  SharedKeys keys;
  for (int i = 0; i < 10000; ++i) {
    keys.insert(key("a"));
    keys.erase(key("a"));
  }
  keys.insert(key("b"));
  EXPECT_THAT(*keys.list(), testing::ElementsAre(key("b")));
}

}  // namespace
}  // namespace croft::store
