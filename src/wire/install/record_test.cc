#include "wire/install/record.h"

#include <gtest/gtest.h>

namespace croft::wire {
namespace {

using Kind = InstallRecord::Kind;

TEST(InstallRecord, WhatIsWrittenIsRead) {
  const InstallRecord record{{{Kind::program, "croft-ipam", std::string(64, 'a')},
                              {Kind::kubeconfig, "croft-kubeconfig", ""},
                              {Kind::network, "10-croft.conflist", std::string(64, '0')}}};
  EXPECT_EQ(decode_install_record(encode(record)), record);
  EXPECT_EQ(decode_install_record(encode({})), InstallRecord{});
}

TEST(InstallRecord, NonsenseIsNamed) {
  for (const char* text :
       {"", "[]", "{}", R"({"version":0})", R"({"version":1,"files":[{"kind":"program","name":"../x"}]})",
        R"({"version":1,"files":[{"kind":"program","name":".."}]})", R"({"version":1,"files":[{"kind":"program"}]})",
        R"({"version":1,"files":[{"kind":"device","name":"x"}]})", R"({"version":1,"files":[null]})",
        R"({"version":1,"files":[{"kind":"program","name":"a","sha256":"b"}]})", R"({"version":1,"files":7})"}) {
    const auto record = decode_install_record(text);
    ASSERT_FALSE(record) << text;
    EXPECT_EQ(record.error().code, ErrorCode::corrupt) << text;
  }
  EXPECT_EQ(decode_install_record(R"({"version":2})").error().code, ErrorCode::newer_version);
}

}  // namespace
}  // namespace croft::wire
