#include "install/format/record.h"

#include <gtest/gtest.h>

namespace croft::wire {
namespace {

using Kind = InstallRecord::Kind;

TEST(InstallRecord, WhatIsWrittenIsRead) {
  const InstallRecord record{{{Kind::program, "croft-ipam", std::string(64, 'a')},
                              {Kind::kubeconfig, "croft-kubeconfig", ""},
                              {Kind::network, "10-croft.conflist", std::string(64, '0')}},
                             {"/opt/cni/bin", "/host/<a> \"b\""}};
  EXPECT_EQ(decode_install_record(encode(record)), record);
  EXPECT_EQ(decode_install_record(encode({})), InstallRecord{});
}

TEST(InstallRecord, NonsenseIsNamed) {
  for (const char* text :
       {"", "[]", "{}", R"({"version":0})", R"({"version":1,"files":[{"kind":"program","name":"../x"}]})",
        R"({"version":1,"files":[{"kind":"program","name":".."}]})", R"({"version":1,"files":[{"kind":"program"}]})",
        R"({"version":1,"files":[{"kind":"device","name":"x"}]})", R"({"version":1,"files":[null]})",
        R"({"version":1,"programDirectories":["opt"]})", R"({"version":1,"programDirectories":[null]})",
        R"({"version":1,"files":[{"kind":"program","name":"a","sha256":"b"}]})", R"({"version":1,"files":7})"}) {
    const auto record = decode_install_record(text);
    ASSERT_FALSE(record) << text;
    EXPECT_EQ(record.error().code, ErrorCode::corrupt) << text;
  }
  EXPECT_EQ(decode_install_record(R"({"version":2})").error().code, ErrorCode::newer_version);
}

TEST(InstallRecord, TheLastEightOfANameAreKept) {
  const auto digest = [](int version) { return std::string(62, 'a') + std::to_string(10 + version); };
  InstallRecord record;
  EXPECT_TRUE(add_to(record, {Kind::kubeconfig, "croft-kubeconfig", ""}));
  EXPECT_FALSE(add_to(record, {Kind::kubeconfig, "croft-kubeconfig", ""}));
  for (int version = 0; version < 20; ++version) {
    EXPECT_TRUE(add_to(record, {Kind::program, "croft-ipam", digest(version)}));
    EXPECT_FALSE(add_to(record, {Kind::program, "croft-ipam", digest(version)})) << version;
  }
  ASSERT_EQ(record.entries.size(), 1 + kInstallVersionsMax);
  EXPECT_EQ(record.entries.at(1).sha256, digest(12)) << "the oldest that is known";
  // Back to it: it is the newest again, and the next one does not push it out.
  EXPECT_TRUE(add_to(record, {Kind::program, "croft-ipam", digest(12)}));
  EXPECT_TRUE(add_to(record, {Kind::program, "croft-ipam", digest(30)}));
  ASSERT_EQ(record.entries.size(), 1 + kInstallVersionsMax);
  EXPECT_EQ(record.entries.at(kInstallVersionsMax - 1).sha256, digest(12));
  EXPECT_EQ(decode_install_record(encode(record)), record);
}

TEST(InstallRecord, TheLastEightDirectoriesAreKept) {
  InstallRecord record;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(add_program_directory(record, "/" + std::to_string(i)));
  EXPECT_EQ(record.program_directories, (std::vector<std::string>{"/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9"}));
  EXPECT_FALSE(add_program_directory(record, "/9"));
  EXPECT_TRUE(add_program_directory(record, "/2"));
  EXPECT_EQ(record.program_directories.back(), "/2");
  EXPECT_EQ(record.program_directories.front(), "/3");
  for (const std::string& path : {std::string(), std::string("opt"), std::string("/\xff"), std::string("/a\nb"),
                                  "/" + std::string(kInstallDirectoryBytesMax, 'a')})
    EXPECT_FALSE(add_program_directory(record, path)) << path;
  EXPECT_EQ(decode_install_record(encode(record)), record);
}

TEST(InstallRecord, TheNetworksNameIsKept) {
  InstallRecord record;
  EXPECT_TRUE(set_network(record, "netx", "croft-ipam"));
  EXPECT_FALSE(set_network(record, "netx", "croft-ipam"));
  EXPECT_TRUE(set_network(record, "netx", "croft-ipam", "sqlite:/a.db"));
  EXPECT_FALSE(set_network(record, "netx", "croft-ipam", "sqlite:/a.db"));
  EXPECT_EQ(decode_install_record(encode(record)), record);
  EXPECT_TRUE(set_network(record, "netx", "croft-ipam", std::string(kInstallStoreBytesMax + 1, 'x')));
  EXPECT_EQ(record.store, "");
  EXPECT_TRUE(set_network(record, "netx", "host-local"));
  EXPECT_EQ(decode_install_record(encode(record)), record);
  // Those of before have none.
  EXPECT_EQ(decode_install_record(R"({"version":1,"files":[]})")->network, "");
  EXPECT_TRUE(set_network(record, std::string(kInstallNetworkBytesMax + 1, 'x'), "croft-ipam"));
  EXPECT_EQ(record.network + record.addresses_from + record.store, "");
}

TEST(InstallRecord, NamesArePlain) {
  for (const std::string& name : {std::string("croft-ipam"), std::string("10-croft.conflist"), std::string(200, 'a')})
    EXPECT_TRUE(is_install_name(name)) << name;
  for (const std::string& name : {std::string(), std::string("."), std::string("../x"), std::string("a/b"),
                                  std::string(".hidden"), std::string("a\nb"), std::string("a b"),
                                  std::string("\xc3\xa9"), std::string("a\0b", 3), std::string(201, 'a')})
    EXPECT_FALSE(is_install_name(name)) << name;
}

}  // namespace
}  // namespace croft::wire
