#include "install/door/node_files.h"

#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "os/files.h"
#include "os/scratch_directory.h"

namespace croft::edge {
namespace {

const std::string kTheirs = R"({"name":"theirs","plugins":[{"type":"bridge"}]})";

std::string program(const std::string& version) {
  return "\x7f"
         "ELF CROFT_LOG_DIRECTORY " +
         version;
}
std::string network(const std::string& version) {
  return R"({"name":"n","v":")" + version + R"(","plugins":[{"type":"ptp","ipam":{"type":"croft-ipam"}}]})";
}

class NodeFilesTest : public testing::Test {
 protected:
  NodeFilesTest() { EXPECT_TRUE(os::make_directories(place_.programs) && os::make_directories(place_.configurations)); }

  void write(const std::string& name, const std::string& content) const {
    EXPECT_TRUE(os::replace_file_durably(scratch_.file(name), content));
  }
  /// What lies in both directories.
  [[nodiscard]] std::map<std::string, std::string> everything() const {
    std::map<std::string, std::string> all;
    for (const std::string directory : {"bin/", "net.d/"}) {
      const auto names = os::list_directory(scratch_.file(directory), 1000).value();
      for (const std::string& name : names) {
        all[directory + name] = os::read_file(scratch_.file(directory + name), 1U << 20).value_or("?");
      }
    }
    return all;
  }
  [[nodiscard]] static InstallPlan plan(const std::string& version, const std::string& file = "10-croft.conflist") {
    return {{{"croft-ipam", program(version)}}, "secret " + version, file, network(version), "n", "ptp"};
  }
  Result<void> install(const InstallPlan& plan, const std::vector<std::string>& aside = {}) {
    Drafts drafts(place_, plan);
    TRY_VOID(drafts.write());
    return drafts.take_effect(aside, tell_);
  }

  os::ScratchDirectory scratch_;
  const NodePlace place_{scratch_.file("bin"), scratch_.file("net.d")};
  std::string told_;
  const Tell tell_ = [this](const std::string& line) { told_ += line + "\n"; };
};

TEST_F(NodeFilesTest, AreWrittenReplacedAndTakenBack) {
  for (const std::string version : {"v1", "v2"}) {
    ASSERT_TRUE(install(plan(version)));
    auto all = everything();
    EXPECT_EQ(all["bin/croft-ipam"], program(version));
    EXPECT_EQ(all["net.d/croft-kubeconfig"], "secret " + version);
    EXPECT_EQ(all["net.d/10-croft.conflist"], network(version));
    EXPECT_EQ(all.size(), 4U) << "with the record";
    using std::filesystem::perms;
    const auto mode = [&](const std::string& name) {
      return std::filesystem::status(scratch_.file(name)).permissions();
    };
    EXPECT_EQ(mode("bin/croft-ipam"), perms(0755));
    EXPECT_EQ(mode("net.d/croft-kubeconfig"), perms(0600));
    EXPECT_EQ(mode("net.d/10-croft.conflist"), perms(0644));
  }
  const auto before = everything();
  ASSERT_TRUE(take_back(place_, true, tell_));
  EXPECT_EQ(everything(), before) << "a dry run";
  ASSERT_TRUE(take_back(place_, false, tell_));
  EXPECT_TRUE(everything().empty());
  told_.clear();
  ASSERT_TRUE(take_back(place_, false, tell_));
  EXPECT_NE(told_.find("no record"), told_.npos);
}

TEST_F(NodeFilesTest, OfOthersComeBack) {
  write("bin/croft-ipam", "theirs");
  write("net.d/10-croft.conflist", kTheirs);
  write("net.d/20-other.conflist", kTheirs);
  const auto before = everything();
  ASSERT_TRUE(install(plan("v1"), {"20-other.conflist"}));
  ASSERT_TRUE(install(plan("v2")));
  auto all = everything();
  EXPECT_EQ(all["bin/croft-ipam.before-croft"], "theirs");
  EXPECT_EQ(all["net.d/10-croft.conflist.before-croft"], kTheirs);
  EXPECT_EQ(all["net.d/20-other.conflist.before-croft"], kTheirs) << "set aside";
  EXPECT_FALSE(all.contains("net.d/20-other.conflist"));
  ASSERT_TRUE(take_back(place_, false, tell_));
  all = everything();
  EXPECT_EQ(all["bin/croft-ipam"] + all["net.d/10-croft.conflist"], "theirs" + kTheirs);
  EXPECT_EQ(all.size(), 3U) << "what was set aside stays so";
}

TEST_F(NodeFilesTest, ThatSomebodyReplacedAreLeft) {
  ASSERT_TRUE(install(plan("v1")));
  write("bin/croft-ipam", "theirs");
  write("net.d/10-croft.conflist", kTheirs);
  ASSERT_TRUE(take_back(place_, false, tell_));
  EXPECT_EQ(everything(),
            (std::map<std::string, std::string>{{"bin/croft-ipam", "theirs"}, {"net.d/10-croft.conflist", kTheirs}}));
  EXPECT_NE(told_.find("left as it is"), told_.npos);
}

TEST_F(NodeFilesTest, OfAPackageStay) {
  write("bin/croft-ipam", program("v1"));
  ASSERT_TRUE(install(plan("v1")));
  ASSERT_TRUE(take_back(place_, false, tell_));
  EXPECT_EQ(everything(), (std::map<std::string, std::string>{{"bin/croft-ipam", program("v1")}}));
}

TEST_F(NodeFilesTest, UnderAnotherNameTakeThePlaceOfTheOld) {
  ASSERT_TRUE(install(plan("v1")));
  ASSERT_TRUE(install(plan("v1", "20-croft.conflist")));
  EXPECT_FALSE(everything().contains("net.d/10-croft.conflist"));
  ASSERT_TRUE(take_back(place_, false, tell_));
  EXPECT_TRUE(everything().empty());
}

TEST_F(NodeFilesTest, ThatCannotBeWrittenChangeNothing) {
  ASSERT_TRUE(install(plan("v1")));
  const auto before = everything();
  for (const std::string name : {"20-croft.conflist", "../x/y.conflist"}) {
    EXPECT_TRUE(os::make_directories(scratch_.file("net.d/20-croft.conflist")));
    InstallPlan wanted = plan("v2", name);
    if (name.starts_with("..")) wanted.programs.push_back({"no/such/program", "x"});
    EXPECT_FALSE(install(wanted)) << name;
    std::filesystem::remove(scratch_.file("net.d/20-croft.conflist"));
    EXPECT_EQ(everything(), before) << name;
  }
  {
    Drafts drafts(place_, plan("v2"));
    ASSERT_TRUE(drafts.write());
    EXPECT_EQ(os::read_file(drafts.kubeconfig(), 100), "secret v2") << "for who asks STATUS";
  }
  EXPECT_EQ(everything(), before) << "nothing took effect";
  for (const auto& [record, remedy] : {std::pair("{", "it is no record of an installation; remove it: "),
                                       {R"({"version":2})",
                                        "version: 2 is newer than this program, which knows 1; let the newer `croftd "
                                        "install --uninstall` take it back, or remove it: "}}) {
    write("net.d/croft-install.record", record);
    EXPECT_FALSE(install(plan("v2")));
    const auto back = take_back(place_, false, tell_);
    ASSERT_FALSE(back);
    EXPECT_NE(back.error().message.find(remedy), std::string::npos) << back.error().message;
  }
}

TEST_F(NodeFilesTest, NetworksAreThoseThatARuntimeReads) {
  write("net.d/20-b.conf", kTheirs);
  write("net.d/10-a.conflist", "{");
  write("net.d/notes.txt", kTheirs);
  EXPECT_TRUE(os::make_directories(scratch_.file("net.d/30-c.conf")));
  const auto all = read_networks(place_.configurations, kTheirs).value();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_NE(all[0].trouble, "");
  EXPECT_TRUE(all[1].is_as_wanted);
  EXPECT_TRUE(read_networks(scratch_.file("nowhere"), "").value().empty());
}

}  // namespace
}  // namespace croft::edge
