#include "install/door/installation.h"

#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/files.h"
#include "os/scratch_directory.h"

namespace croft::edge {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

class InstallationTest : public testing::Test {
 protected:
  InstallationTest() { begin(); }
  void begin() const {
    std::filesystem::remove_all(programs_);
    std::filesystem::remove_all(configurations_);
    EXPECT_TRUE(os::make_directories(programs_) && os::make_directories(configurations_));
    write("bin/ptp",
          "\x7f"
          "ELF");
    make_executable("bin/ptp");
  }
  void make_executable(const std::string& name) const {
    std::filesystem::permissions(scratch_.file(name), std::filesystem::perms(0755));
  }
  void write(const std::string& name, const std::string& content) const {
    EXPECT_TRUE(os::replace_file_durably(scratch_.file(name), content));
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    const auto content = os::read_file(scratch_.file(name), 1U << 20);
    return content ? *content : "(" + std::string(name_of(content.error().code)) + ")";
  }
  [[nodiscard]] unsigned mode(const std::string& name) const {
    struct stat found {};
    return ::stat(scratch_.file(name).c_str(), &found) == 0 ? found.st_mode & 07777U : 0U;
  }
  [[nodiscard]] InstallPlan plan(std::string_view program, const std::string& network = "10-croft.conflist") const {
    return {{{"croft-ipam", program}}, {"ptp"}, "croft-kubeconfig", network};
  }
  Result<void> install(
      const InstallPlan& plan, const std::string& network = "{}", const std::string& kubeconfig = "secret",
      const InstallProbe& probe = [](const std::string&) { return Result<void>(); }) {
    TRY_VOID(installation_.check(plan));
    return installation_.write(plan, {kubeconfig, network}, probe);
  }
  /// What lies in both directories, with content and mode.
  [[nodiscard]] std::map<std::string, std::string> everything() const {
    std::map<std::string, std::string> all;
    for (const std::string directory : {"bin/", "net.d/"}) {
      const auto names = os::list_directory(scratch_.file(directory), 1000).value();
      for (const std::string& name : names) {
        all[directory + name] = read(directory + name) + " " + std::to_string(mode(directory + name));
      }
    }
    return all;
  }

  void fails_at(const std::string& in_the_way, bool is_there) {
    begin();
    write("bin/host-local", "theirs");
    if (is_there) {
      ASSERT_TRUE(install(plan("v1"), "{}", "old"));
    }
    // A directory that is not empty takes the name as the probe is made: no rename goes there.
    const auto block = [&](const std::string&) -> Result<void> {
      std::filesystem::remove(scratch_.file(in_the_way));
      EXPECT_TRUE(os::make_directories(scratch_.file(in_the_way + "/x")));
      return {};
    };
    std::map<std::string, std::string> before = everything();
    InstallPlan both = plan("v2", "20-croft.conflist");
    both.programs.push_back({"host-local", "v2"});
    const auto done = install(both, "[]", "new", block);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr(in_the_way));
    std::filesystem::remove_all(scratch_.file(in_the_way));
    auto after = everything();
    before.erase(in_the_way);
    after.erase(in_the_way);
    EXPECT_EQ(after, before);
    told_.clear();
    ASSERT_TRUE(install(both, "[]", "new")) << "once nothing is in the way";
    EXPECT_EQ(read("bin/croft-ipam") + read("bin/host-local") + read("net.d/croft-kubeconfig"), "v2v2new");
  }

  os::ScratchDirectory scratch_;
  const std::string programs_ = scratch_.file("bin"), configurations_ = scratch_.file("net.d");
  std::vector<std::string> told_;
  Installation installation_{{programs_, configurations_}, [this](const std::string& line) { told_.push_back(line); }};
};

TEST_F(InstallationTest, WritesAllAndTakesAllBack) {
  ASSERT_TRUE(install(plan("v1")));
  EXPECT_EQ(read("bin/croft-ipam"), "v1");
  EXPECT_EQ(mode("bin/croft-ipam"), 0755U);
  EXPECT_EQ(mode("net.d/croft-kubeconfig"), 0600U);
  EXPECT_EQ(mode("net.d/10-croft.conflist"), 0644U);
  ASSERT_TRUE(installation_.take_back(true));
  EXPECT_EQ(read("bin/croft-ipam"), "v1") << "a dry run";
  told_.clear();
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_THAT(told_.at(0), HasSubstr("conflist")) << "before what it names";
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), IsEmpty());
  EXPECT_THAT(os::list_directory(programs_, 10).value(), testing::ElementsAre("ptp"));
  told_.clear();
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_THAT(told_, Contains(HasSubstr("nothing of Croft")));
}

TEST_F(InstallationTest, AnUpgradeAndARollBackAreTakenBackToo) {
  for (const char* version : {"v1", "v2", "v2", "v1"}) {
    ASSERT_TRUE(install(plan(version), version)) << version;
    EXPECT_EQ(read("bin/croft-ipam"), version);
    EXPECT_EQ(read("net.d/10-croft.conflist"), version);
  }
  EXPECT_EQ(read("bin/croft-ipam.before-croft"), "(not_found)") << "an older one is no other's";
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_THAT(os::list_directory(programs_, 10).value(), testing::ElementsAre("ptp"));
}

/// Also where only the sibling was written anew: at no moment is croft-ipam there without it.
TEST_F(InstallationTest, APluginGoesBeforeWhatItNeeds) {
  InstallPlan both = plan("v1");
  both.programs.insert(both.programs.begin(), {"croft-ipam-cluster", "v1"});
  ASSERT_TRUE(install(both));
  both.programs.front().content = "v2";
  ASSERT_TRUE(install(both));
  told_.clear();
  ASSERT_TRUE(installation_.take_back(false));
  std::vector<std::string> gone;
  for (const std::string& line : told_) {
    if (line.ends_with("bin/croft-ipam removed") || line.ends_with("bin/croft-ipam-cluster removed")) {
      gone.push_back(line.substr(line.rfind('/') + 1));
    }
  }
  EXPECT_THAT(gone, testing::ElementsAre("croft-ipam removed", "croft-ipam-cluster removed"));
}

/// The runtime's library has the old one's pages mapped: the file that it runs is never written to.
TEST_F(InstallationTest, ARunningProgramIsNotCut) {
  ASSERT_TRUE(install(plan("v1")));
  const auto before = os::file_status(scratch_.file("bin/croft-ipam")).value()->id;
  ASSERT_TRUE(install(plan("v2")));
  EXPECT_NE(os::file_status(scratch_.file("bin/croft-ipam")).value()->id, before);
  const auto after = os::file_status(scratch_.file("bin/croft-ipam")).value()->id;
  ASSERT_TRUE(install(plan("v2")));
  EXPECT_EQ(os::file_status(scratch_.file("bin/croft-ipam")).value()->id, after) << "the same is not written again";
}

TEST_F(InstallationTest, WhatWasAnothersComesBack) {
  write("bin/host-local", "theirs");
  std::filesystem::permissions(scratch_.file("bin/host-local"), std::filesystem::perms{0750});
  InstallPlan both = plan("v1");
  both.programs.push_back({"host-local", "v1"});
  ASSERT_TRUE(install(both));
  EXPECT_EQ(read("bin/host-local"), "v1");
  EXPECT_EQ(read("bin/host-local.before-croft"), "theirs");
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_EQ(read("bin/host-local"), "theirs");
  EXPECT_EQ(mode("bin/host-local"), 0750U) << "as it was";
}

/// What was there before Croft is kept once and for all, also when the record that names the later ones was removed.
TEST_F(InstallationTest, WhatWasKeptIsNeverOverwritten) {
  const std::string croft =
      "\x7f"
      "ELF CROFT_LOG_DIRECTORY ";
  write("bin/host-local", "theirs");
  const auto both = [&](std::string_view program) {
    InstallPlan plan = this->plan(program);
    plan.programs.push_back({"host-local", program});
    return plan;
  };
  const std::string v1 = croft + "1", v2 = croft + "2";
  ASSERT_TRUE(install(both(v1)));
  ASSERT_TRUE(os::remove_file_durably(scratch_.file("net.d/croft-install.record")));
  ASSERT_TRUE(install(both(v2)));
  EXPECT_EQ(read("bin/host-local") + read("bin/host-local.before-croft"), v2 + "theirs");
  EXPECT_EQ(read("bin/host-local.before-croft-1"), "(not_found)") << "an earlier Croft is nobody's loss";
  EXPECT_THAT(told_, Contains(HasSubstr("was an earlier Croft")));
  // One that can't be told from another's.
  write("bin/host-local", "a second one's");
  for (const char* turn : {"first", "again"}) {
    ASSERT_TRUE(install(both(v1))) << turn;
    EXPECT_EQ(read("bin/host-local.before-croft"), "theirs");
    EXPECT_EQ(read("bin/host-local.before-croft-1"), "a second one's");
    EXPECT_EQ(read("bin/host-local.before-croft-2"), "(not_found)");
    write("bin/host-local", "a second one's");
  }
  EXPECT_THAT(told_, Contains(HasSubstr("kept as " + scratch_.file("bin/host-local.before-croft-1"))));
  EXPECT_THAT(told_, Contains(HasSubstr("before-croft-1 has it already")));
  for (int other = 2; other <= 9; ++other) {
    write("bin/host-local", std::to_string(other));
    ASSERT_TRUE(install(both(v1))) << other;
  }
  write("bin/host-local", "one too many");
  const auto before = everything();
  const auto done = install(both(v1));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("host-local.before-croft-9 is there"));
  EXPECT_EQ(everything(), before);
  write("bin/host-local", v1);
  told_.clear();
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_EQ(read("bin/host-local"), "9") << "what was there before, and not what was there first";
  EXPECT_EQ(read("bin/host-local.before-croft"), "theirs");
  EXPECT_EQ(read("bin/host-local.before-croft-9"), "(not_found)");
  EXPECT_THAT(told_, Contains(HasSubstr("host-local.before-croft-1 was kept")));
}

/// A package's upgrade, and its way back: the last one counts, also where the same was kept before.
TEST_F(InstallationTest, WhatWasThereLastComesBack) {
  for (const char* theirs : {"A", "B", "A"}) {
    write("bin/croft-ipam", theirs);
    ASSERT_TRUE(install(plan("v1")));
  }
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_EQ(read("bin/croft-ipam"), "A");
  EXPECT_EQ(read("bin/croft-ipam.before-croft") + read("bin/croft-ipam.before-croft-1"), "AB") << "nothing is lost";
}

TEST_F(InstallationTest, WhatSomebodyPutInItsPlaceStays) {
  ASSERT_TRUE(install(plan("v1")));
  write("bin/croft-ipam", "somebody's");
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_EQ(read("bin/croft-ipam"), "somebody's");
  EXPECT_THAT(told_, Contains(HasSubstr("left as it is")));
}

/// Of the name alone nobody knows whose it is: the digest says.
TEST_F(InstallationTest, ANetworkThatSomebodyPutInItsPlaceStays) {
  const std::string theirs = R"({"name": "mine"})";
  const auto is_told = [&] {
    EXPECT_EQ(read("net.d/10-croft.conflist"), theirs);
    EXPECT_THAT(told_, Contains(testing::AllOf(HasSubstr("10-croft.conflist was replaced"), HasSubstr("remove it"))));
    told_.clear();
  };
  ASSERT_TRUE(install(plan("v1")));
  write("net.d/10-croft.conflist", theirs);
  const auto refused = install(plan("v1", "20-croft.conflist"));
  ASSERT_FALSE(refused) << "it would win";
  EXPECT_THAT(refused.error().message, HasSubstr("10-croft.conflist"));
  ASSERT_TRUE(install(plan("v1", "05-croft.conflist")));
  is_told();
  ASSERT_TRUE(installation_.take_back(false));
  is_told();
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), testing::ElementsAre("10-croft.conflist"));
}

TEST_F(InstallationTest, ANetworkThatWasThereBeforeComesBack) {
  const std::string theirs = R"({"name": "mine"})";
  write("net.d/10-croft.conflist", theirs);
  ASSERT_TRUE(install(plan("v1")));
  EXPECT_EQ(read("net.d/10-croft.conflist") + read("net.d/10-croft.conflist.before-croft"), "{}" + theirs);
  EXPECT_EQ(mode("net.d/10-croft.conflist.before-croft"), 0600U) << "it may have a secret";
  EXPECT_THAT(told_, Contains(HasSubstr("was another's: kept as")));
  ASSERT_TRUE(install(plan("v2"), "[]"));
  const std::string second = R"({"name": "a second one's"})";
  write("net.d/10-croft.conflist", second);
  ASSERT_TRUE(install(plan("v2"), "[]"));
  EXPECT_EQ(read("net.d/10-croft.conflist.before-croft"), theirs) << "never overwritten";
  EXPECT_EQ(read("net.d/10-croft.conflist.before-croft-1"), second);
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_EQ(read("net.d/10-croft.conflist"), second);
  EXPECT_THAT(os::list_directory(configurations_, 10).value(),
              testing::UnorderedElementsAre("10-croft.conflist", "10-croft.conflist.before-croft"));
}

/// The letters of Croft's name are in many words.
TEST_F(InstallationTest, ANetworkThatOnlyHasTheLettersComesBack) {
  const std::string theirs = R"({"name":"lan","plugins":[{"type":"bridge","nodename":"bancroft-3",
      "ipam":{"type":"host-local","subnet":"10.9.0.0/24"}}]})";
  write("net.d/10-croft.conflist", theirs);
  ASSERT_TRUE(install(plan("v1")));
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_EQ(read("net.d/10-croft.conflist"), theirs);
}

TEST_F(InstallationTest, AnyNetworkBeforeCroftsOwnMayBeInUse) {
  EXPECT_THAT(installation_.networks_in_use().value(), IsEmpty());
  write("net.d/10-flannel.conflist", R"({"name":"cbr0","plugins":[{"type":"flannel"}]})");
  write("net.d/20-other.conflist", R"({"name":"other","plugins":[{"type":"ptp"}]})");
  write("net.d/00-notes.txt", "{}");
  EXPECT_TRUE(os::make_directories(scratch_.file("net.d/00-directory.conf")));
  const auto theirs = installation_.networks_in_use().value();
  ASSERT_EQ(theirs.size(), 2U);
  EXPECT_EQ(theirs[0].file + theirs[0].calls.name, "10-flannel.conflistcbr0");
  EXPECT_TRUE(theirs[0].calls.has("flannel"));
  EXPECT_FALSE(theirs[0].is_ours);
  EXPECT_EQ(theirs[1].file + theirs[1].calls.name, "20-other.conflistother");
  ASSERT_TRUE(install(plan("v1", "05-croft.conflist")));
  const auto now = installation_.networks_in_use().value();
  ASSERT_EQ(now.size(), 3U) << "pods may be of one that was the first before";
  EXPECT_TRUE(now[0].is_ours);
}

/// What lies behind Croft's own file was asked when that was written: of another giver it was not.
TEST_F(InstallationTest, BehindAFileThatStaysNothingIsAskedAgain) {
  const auto own = [](const std::string& ipam) {
    return R"({"cniVersion":"1.0.0","name":"n","plugins":[{"type":"ptp","ipam":)" + ipam + "}]}";
  };
  const std::string registers = own(R"({"type":"croft-ipam","store":"sqlite:/a.db"})");
  write("net.d/20-other.conflist", R"({"name":"other","plugins":[{"type":"ptp"}]})");
  const auto count = [&](const NextGiver& next, const std::string& text = "") {
    return installation_.networks_to_replace(next, text).value().size();
  };
  const NextGiver same{true, "n", {}, "sqlite:/a.db"};
  ASSERT_TRUE(install(plan("v1", "05-croft.conflist"), registers));
  EXPECT_EQ(count(same), 1U);
  EXPECT_EQ(count({true, "other-name", {}, "sqlite:/a.db"}), 1U) << "the register is what knows";
  EXPECT_EQ(count({true, "n", {}, "sqlite:/b.db"}), 2U);
  EXPECT_EQ(count({false, "n"}), 2U);
  // Where the record is lost the same text still changes nothing, and no other text of Croft's does.
  write("net.d/croft-install.record", R"({"version":1,"files":[]})");
  EXPECT_EQ(count(same), 2U);
  EXPECT_EQ(count(same, registers), 1U);
  // Changed by hand to what some runtime passes over, or its plugin gone.
  ASSERT_TRUE(install(plan("v1", "05-croft.conflist"), registers));
  write("net.d/05-croft.conflist", R"({"cniVersion":"1.0.0","dns":"8.8.8.8",)" + registers.substr(1));
  EXPECT_EQ(count(same), 2U);
  ASSERT_TRUE(install(plan("v1", "05-croft.conflist"), registers));
  EXPECT_EQ(count(same), 1U);
  ASSERT_EQ(std::remove(scratch_.file("bin/ptp").c_str()), 0);
  EXPECT_EQ(count(same), 2U);
  write("bin/ptp", "ptp");
  make_executable("bin/ptp");
  ASSERT_TRUE(install(plan("v1", "05-croft.conflist"), own(R"({"type":"host-local","subnet":"10.0.0.0/24"})")));
  EXPECT_EQ(count({false, "n"}), 2U) << "host-local is not there";
  write("bin/host-local", "host-local");
  EXPECT_EQ(count({false, "n"}), 1U);
  EXPECT_EQ(count({false, "m"}), 2U);
  EXPECT_EQ(count(same), 2U);
}

TEST_F(InstallationTest, NetworkConfigurationsAreReadWithinABound) {
  for (int i = 0; i < 17; ++i) {
    write("net.d/" + std::to_string(20 + i) + "-large.conf",
          R"({"name":"x","type":"ptp"})" + std::string(2'000'000, ' '));
  }
  const auto all = installation_.networks_in_use();
  ASSERT_FALSE(all);
  EXPECT_THAT(all.error().message, AllOf(HasSubstr("more than 32 MiB"), HasSubstr("net.d"), HasSubstr("remove")));
}

/// What some runtime passes over hides nothing behind it.
TEST_F(InstallationTest, WhatARuntimeSurelyTakesHidesWhatCannotBeRead) {
  const auto hides = [&](const std::string& file, const std::string& text) {
    begin();
    write("net.d/" + file, text);
    write("net.d/20-broken.conf", "");
    const auto all = installation_.networks_in_use().value();
    EXPECT_EQ(all.size(), 2U);
    return all.back().is_behind;
  };
  const std::string whole = R"({"cniVersion":"1.0.0","name":"x","plugins":[{"type":"ptp"}]})";
  EXPECT_TRUE(hides("11-x.conflist", whole));
  EXPECT_TRUE(hides("11-x.conf", R"({"name":"x","type":"ptp"})"));
  EXPECT_FALSE(hides("11-x.conf", whole));
  for (const char* text :
       {R"({"plugins":[{"type":"ptp"}]})", R"({"name":"x","type":"ptp"})", R"({"name":"x","plugins":[]})",
        R"({"name":"x","plugins":[{"type":"ptp"},{}]})", R"({"cniVersion":4,"name":"x","plugins":[{"type":"ptp"}]})",
        R"({"name":"x","plugins":[{"type":"ptp"},{"type":"not-there"}]})",
        R"({"name":"x","plugins":[{"type":"ptp","clusterNetwork":"y"}]})",
        R"({"cniVersion":"1.1.0","name":"x","plugins":[{"type":"ptp"}]})",
        R"({"cniVersion":"1.0","name":"x","plugins":[{"type":"ptp"}]})",
        R"({"disableCheck":5,"name":"x","plugins":[{"type":"ptp"}]})",
        R"({"cniVersions":"1.0.0","name":"x","plugins":[{"type":"ptp"}]})",
        R"({"name":"x","plugins":[{"type":"ptp","dns":"8.8.8.8"}]})",
        R"({"name":"x","plugins":[{"type":"ptp","dns":{"search":"a"}}]})",
        R"({"name":"x","plugins":[{"type":"ptp","capabilities":["portMappings"]}]})",
        R"({"name":"x","plugins":[{"type":"ptp","capabilities":{"a":1}}]})",
        R"({"name":"x","plugins":[{"type":"ptp","ipam":5}]})",
        R"({"name":"x","plugins":[{"type":"ptp","prevResult":"a"}]})"}) {
    EXPECT_FALSE(hides("11-x.conflist", text)) << text;
  }
}

TEST_F(InstallationTest, WhatCannotBeReadMayBeInUse) {
  write("net.d/10-empty.conf", "");
  write("net.d/15-large.conf", std::string((std::size_t{1} << 20) + 1, ' '));
  std::filesystem::create_symlink("nowhere", scratch_.file("net.d/16-link.conf"));
  write("net.d/20-flannel.conflist", R"({"name":"cbr0","plugins":[{"type":"flannel"}]})");
  const auto all = installation_.networks_in_use().value();
  ASSERT_EQ(all.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NE(all[i].trouble, "") << all[i].file;
  EXPECT_EQ(all[3].file + all[3].trouble, "20-flannel.conflist");
}

TEST_F(InstallationTest, TheRecordKeepsTheNetworksName) {
  EXPECT_EQ(installation_.recorded_network().value().name, "");
  ASSERT_TRUE(install(plan("v1"), R"({"name":"netx","plugins":[{"type":"flannel"}]})"));
  EXPECT_EQ(installation_.recorded_network().value().name, "netx");
  EXPECT_EQ(installation_.recorded_network().value().addresses_from, "host-local");
  write("net.d/10-croft.conflist", "");
  const auto all = installation_.networks_in_use().value();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(all[0].has_our_name && !all[0].is_ours && !all[0].trouble.empty());
  EXPECT_EQ(installation_.recorded_network().value().name, "netx");
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_EQ(installation_.recorded_network().value().name, "");
}

/// Of a version that does not note it, and leaves out what it does not know.
TEST_F(InstallationTest, WithoutAGiverInTheRecordTheProgramsSayIt) {
  const auto giver_by = [&](const std::string& programs) {
    write("net.d/croft-install.record", R"({"version":1,"files":[)" + programs + R"(],"network":"n"})");
    const auto recorded = installation_.recorded_network().value();
    EXPECT_EQ(recorded.is_inferred, !recorded.addresses_from.empty());
    return recorded.addresses_from;
  };
  const std::string digest = R"(","sha256":")" + std::string(64, 'a') + R"("})";
  const std::string croft = R"({"kind":"program","name":"croft-ipam)" + digest;
  const std::string host_local = R"({"kind":"program","name":"host-local)" + digest;
  EXPECT_EQ(giver_by(croft), "croft-ipam");
  EXPECT_EQ(giver_by(host_local), "host-local");
  EXPECT_EQ(giver_by(host_local + "," + croft), "croft-ipam or host-local");
  EXPECT_EQ(giver_by(""), "");
}

TEST_F(InstallationTest, WhatComesToTheFrontOnceCroftsIsTakenBack) {
  const std::string theirs = R"({"cniVersion":"1.0.0","name":"theirs","plugins":[{"type":"ptp"}]})";
  const auto to_come = [&] {
    std::string names;
    const auto all = installation_.networks_to_come().value();
    for (const NodeNetwork& one : all) names += one.file + one.calls.name + " ";
    return names;
  };
  EXPECT_EQ(to_come(), "");
  write("net.d/10-croft.conflist", theirs);
  write("net.d/20-behind.conflist", theirs);
  EXPECT_EQ(to_come(), "") << "nothing of Croft goes";
  ASSERT_TRUE(install(plan("v1")));
  EXPECT_EQ(to_come(), "10-croft.conflisttheirs 20-behind.conflisttheirs ") << "it comes back";
  begin();
  ASSERT_TRUE(install(plan("v1")));
  EXPECT_EQ(to_come(), "");
  write("net.d/11-broken.conflist", "");
  write("net.d/20-behind.conflist", theirs);
  write("net.d/30-further.conflist", theirs);
  EXPECT_EQ(to_come(), "11-broken.conflist 20-behind.conflisttheirs 30-further.conflisttheirs ");
  // Nobody can tell that each runtime takes the first.
  write("net.d/05-first.conflist", theirs);
  EXPECT_EQ(to_come(),
            "05-first.conflisttheirs 11-broken.conflist 20-behind.conflisttheirs 30-further.conflisttheirs ");
}

/// One that was changed by hand would make the node ready with a plugin that is gone.
TEST_F(InstallationTest, ANetworkThatCallsCroftDoesNotComeBack) {
  write("net.d/10-croft.conflist", R"({"ipam": {"type": "croft-ipam"}})");
  ASSERT_TRUE(install(plan("v1")));
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_EQ(read("net.d/10-croft.conflist"), "(not_found)");
  EXPECT_THAT(told_, Contains(HasSubstr("10-croft.conflist.before-croft calls Croft's plugin")));
}

/// Else no pod of it would start, nor be taken down, on a node that is ready.
TEST_F(InstallationTest, WhatANetworkThatStaysCallsStays) {
  const auto calls = [](const std::string& program) {
    return R"({"name":"n","plugins":[{"type":"ptp","ipam":{"type":")" + program + R"("}}]})";
  };
  const auto is_refused = [&](const std::string& file, const std::string& program, const std::string& remedy) {
    const auto before = everything();
    for (const bool dry_run : {true, false}) {
      const auto done = installation_.take_back(dry_run);
      ASSERT_FALSE(done) << file;
      EXPECT_EQ(done.error().code, ErrorCode::refused_for_safety);
      EXPECT_THAT(done.error().message, testing::AllOf(HasSubstr(scratch_.file("net.d/" + file) + " calls " + program),
                                                       HasSubstr(remedy), HasSubstr("--force")));
      EXPECT_EQ(everything(), before);
    }
  };
  const auto both = [&] {
    begin();
    InstallPlan plan = this->plan("v1");
    plan.programs.push_back({"host-local", "v1"});
    ASSERT_TRUE(install(plan, calls("croft-ipam")));
  };
  for (const std::string name : {"20-second.conflist", "10-croft.conflist", "20-large.conflist"}) {
    both();
    // containerd reads files of two megabytes.
    const std::string rest(name == "20-large.conflist" ? 1'900'000 : 1, '\n');
    write("net.d/" + name, calls("croft-ipam") + rest);
    is_refused(name, "croft-ipam", "change or remove it first");
  }
  ASSERT_TRUE(installation_.take_back(false, Installation::Stays::broken));
  EXPECT_EQ(read("bin/croft-ipam"), "(not_found)");
  both();
  write("net.d/10-calico.conflist", calls("croft-ipam"));
  write("net.d/10-calico.conflist.before-croft", "");
  is_refused("10-calico.conflist", "croft-ipam", "mv ");
  both();
  write("net.d/10-flannel.conflist", R"({"name":"cbr0","plugins":[{"type":"flannel"}]})");
  is_refused("10-flannel.conflist", "host-local", "change or remove");
  // What comes back is called as before.
  begin();
  write("net.d/10-croft.conflist", calls("host-local"));
  InstallPlan plan = this->plan("v1");
  plan.programs.push_back({"host-local", "v1"});
  ASSERT_TRUE(install(plan, calls("croft-ipam")));
  is_refused("10-croft.conflist.before-croft", "host-local", "change or remove");
  begin();
  write("bin/host-local", "theirs");
  write("net.d/10-croft.conflist", calls("host-local"));
  ASSERT_TRUE(install(plan, calls("croft-ipam")));
  write("net.d/30-other.conflist", calls("host-local"));
  write("net.d/40-broken.conflist", "{");
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_EQ(read("bin/host-local"), "theirs");
}

TEST_F(InstallationTest, WhatWasNeverWrittenIsNotTakenBack) {
  const std::string network = scratch_.file("net.d/10-croft.conflist");
  const auto stays = [&](std::filesystem::file_type type) {
    EXPECT_FALSE(install(plan("v1")));
    ASSERT_TRUE(installation_.take_back(false));
    EXPECT_EQ(std::filesystem::symlink_status(network).type(), type);
    // Also where an installation that was killed had written its record by then.
    std::filesystem::rename(network, network + ".aside");
    ASSERT_TRUE(install(plan("v1")));
    std::filesystem::remove(network);
    std::filesystem::rename(network + ".aside", network);
    told_.clear();
    ASSERT_TRUE(installation_.take_back(false));
    EXPECT_EQ(std::filesystem::symlink_status(network).type(), type);
    EXPECT_THAT(told_, Contains(HasSubstr("10-croft.conflist was replaced")));
    std::filesystem::remove(network);
  };
  ASSERT_EQ(::mkfifo(network.c_str(), 0600), 0);
  stays(std::filesystem::file_type::fifo);
  std::filesystem::create_symlink("/dev/zero", network);
  stays(std::filesystem::file_type::symlink);
  write("net.d/10-croft.conflist", "");
  std::filesystem::resize_file(network, std::uintmax_t{1} << 36);
  stays(std::filesystem::file_type::regular);
  write("bin/croft-ipam", "v1");
  ASSERT_TRUE(install(plan("v1")));
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_EQ(read("bin/croft-ipam"), "v1") << "a package's";
}

TEST_F(InstallationTest, ALinkToNothingIsNamedAndStopsNothingElse) {
  InstallPlan both = plan("v1");
  both.programs.push_back({"host-local", "v1"});
  const std::string link = scratch_.file("bin/croft-ipam");
  std::filesystem::create_symlink("nowhere", link);
  const auto named = [&](const Result<void>& done) {
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::refused_by_configuration);
    EXPECT_THAT(done.error().message, HasSubstr(link + " is a symbolic link to nothing: remove it"));
  };
  named(install(both));
  EXPECT_EQ(read("net.d/croft-install.record"), "(not_found)");
  std::filesystem::remove(link);
  ASSERT_TRUE(install(both));
  std::filesystem::remove(link);
  std::filesystem::create_symlink("nowhere", link);
  const auto done = installation_.take_back(false);
  named(done);
  EXPECT_THAT(done.error().message, HasSubstr("not all was taken back"));
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), testing::ElementsAre("croft-install.record"));
  EXPECT_EQ(read("bin/host-local"), "(not_found)") << "the rest is gone";
  std::filesystem::remove(link);
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), IsEmpty());
}

/// Else the record goes and the programs stay, and nobody can take them back.
TEST_F(InstallationTest, ProgramsInAnotherDirectoryAreNamedAndStayOnTheRecord) {
  ASSERT_TRUE(os::make_directories(scratch_.file("other")));
  ASSERT_TRUE(install(plan("v1")));
  const auto tell = [this](const std::string& line) { told_.push_back(line); };
  Installation elsewhere({scratch_.file("other"), configurations_}, tell);
  for (const bool dry_run : {true, false}) {
    told_.clear();
    const auto done = elsewhere.take_back(dry_run);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::refused_by_configuration);
    EXPECT_THAT(done.error().message, HasSubstr("left, as written here too: " + scratch_.file("bin/croft-ipam")));
    EXPECT_THAT(done.error().message, HasSubstr("--cni-bin-dir"));
    EXPECT_THAT(told_, Contains(scratch_.file("other/croft-ipam") + " is not there"));
  }
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), testing::ElementsAre("croft-install.record"));
  EXPECT_THAT(read("net.d/croft-install.record"), Not(HasSubstr("kubeconfig"))) << "no agent writes it again";
  EXPECT_EQ(read("bin/croft-ipam"), "v1");
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), IsEmpty());
  EXPECT_THAT(os::list_directory(programs_, 10).value(), testing::ElementsAre("ptp"));
}

/// Installed here and there: neither is forgotten. A link to a directory is that directory.
TEST_F(InstallationTest, ProgramsInTwoDirectoriesAreTakenBackOneAfterTheOther) {
  ASSERT_TRUE(os::make_directories(scratch_.file("other")));
  write("other/ptp",
        "\x7f"
        "ELF");
  std::filesystem::create_directory_symlink(scratch_.file("bin"), scratch_.file("link"));
  const auto tell = [this](const std::string& line) { told_.push_back(line); };
  Installation other({scratch_.file("other"), configurations_}, tell);
  Installation link({scratch_.file("link"), configurations_}, tell);
  ASSERT_TRUE(install(plan("v1")));
  ASSERT_TRUE(other.write(plan("v1"), {"secret", "{}"}, [](const std::string&) { return Result<void>(); }));
  const auto done = link.take_back(false);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, testing::AllOf(HasSubstr(scratch_.file("other/croft-ipam")),
                                                   Not(HasSubstr(scratch_.file("bin/croft-ipam")))));
  EXPECT_EQ(read("bin/croft-ipam"), "(not_found)");
  ASSERT_TRUE(other.take_back(false));
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), IsEmpty());
  EXPECT_THAT(os::list_directory(scratch_.file("other"), 10).value(), testing::ElementsAre("ptp"));
}

/// A container has the host's directory under another path, and none of the host's others.
TEST_F(InstallationTest, ADirectoryThatCannotBeSeenFromHereIsToldAndKeptWhereAProgramIsMissing) {
  const auto tell = [this](const std::string& line) { told_.push_back(line); };
  const auto in_container = [&](const std::string& on_host) {
    return Installation({programs_, configurations_, on_host}, tell);
  };
  const auto probe = [](const std::string&) { return Result<void>(); };
  ASSERT_TRUE(in_container("/opt/cni/bin").write(plan("v1"), {"secret", "{}"}, probe));
  EXPECT_THAT(read("net.d/croft-install.record"), HasSubstr(R"("programDirectories":["/opt/cni/bin"])"));
  ASSERT_TRUE(in_container("/opt/cni/bin").take_back(false)) << "it is the same";
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), IsEmpty());

  ASSERT_TRUE(in_container("/opt/cni/bin").write(plan("v1"), {"secret", "{}"}, probe));
  told_.clear();
  ASSERT_TRUE(in_container("/usr/lib/cni").take_back(false)) << "the chart's value was changed";
  EXPECT_THAT(told_, Contains(HasSubstr("programs were written to /opt/cni/bin too")));
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), IsEmpty());

  ASSERT_TRUE(in_container("/nowhere/bin").write(plan("v1"), {"secret", "{}"}, probe));
  ASSERT_TRUE(os::make_directories(scratch_.file("other")));
  told_.clear();
  ASSERT_TRUE(Installation({scratch_.file("other"), configurations_}, tell).take_back(false));
  EXPECT_THAT(told_, Contains(HasSubstr("programs were written to /nowhere/bin too")));
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), testing::ElementsAre("croft-install.record"));
  ASSERT_TRUE(Installation({programs_, configurations_}, tell).take_back(false));
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), IsEmpty());
}

TEST_F(InstallationTest, WithoutARecordWhatOfCroftLiesThereIsNamedAndLeft) {
  const std::string croft =
      "\x7f"
      "ELF CROFT_LOG_DIRECTORY ";
  write("bin/croft-ipam", croft);
  write("bin/host-local", "theirs");
  Installation wrong({programs_, scratch_.file("nowhere")}, [this](const std::string& line) { told_.push_back(line); });
  ASSERT_TRUE(wrong.take_back(false));
  EXPECT_THAT(told_, Contains(HasSubstr("nothing of Croft is recorded in " + scratch_.file("nowhere/croft-install"))));
  EXPECT_THAT(told_, Contains(testing::AllOf(HasSubstr(scratch_.file("nowhere") + " is not there"),
                                             HasSubstr("--cni-conf-dir"))));
  EXPECT_THAT(told_, Contains(HasSubstr(scratch_.file("bin/croft-ipam") + " is a program of Croft")));
  EXPECT_THAT(told_, Not(Contains(HasSubstr("host-local"))));
  EXPECT_EQ(read("bin/croft-ipam"), croft);
}

TEST_F(InstallationTest, ARecordThatWasNeverFinishedGoes) {
  write("net.d/croft-install.record.77.tmp", "half");
  ASSERT_TRUE(installation_.take_back(true));
  EXPECT_EQ(read("net.d/croft-install.record.77.tmp"), "half");
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), IsEmpty());
}

/// What an installation that was killed had kept, and not replaced yet.
TEST_F(InstallationTest, ASecondNameOfWhatIsThereGoes) {
  write("bin/host-local", "theirs");
  write("net.d/10-croft.conflist", R"({"name": "mine"})");
  InstallPlan both = plan("v1");
  both.programs.push_back({"host-local", "v1"});
  const auto before = everything();
  ASSERT_TRUE(install(both));
  for (const std::string name : {"bin/host-local", "net.d/10-croft.conflist"}) {
    std::filesystem::remove(scratch_.file(name));
    std::filesystem::create_hard_link(scratch_.file(name + ".before-croft"), scratch_.file(name));
  }
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_EQ(everything(), before);
}

TEST_F(InstallationTest, WhatStandsInTheWayIsToldBeforeAnythingIsWritten) {
  const auto refused = [&](const InstallPlan& wanted, ErrorCode code, const char* text) {
    const auto done = install(wanted);
    ASSERT_FALSE(done) << text;
    EXPECT_EQ(done.error().code, code) << done.error().message;
    EXPECT_THAT(done.error().message, HasSubstr(text));
    EXPECT_EQ(read("bin/croft-ipam"), "(not_found)");
    EXPECT_EQ(read("net.d/croft-install.record"), "(not_found)");
  };
  write("net.d/05-other.conflist", "{}");
  refused(plan("v1"), ErrorCode::refused_for_safety, "05-other.conflist");
  ASSERT_TRUE(os::remove_file_durably(scratch_.file("net.d/05-other.conflist")));
  write("net.d/05-other.conflist.bak", "{}");
  write("net.d/99-other.conf", "{}");
  InstallPlan wanted = plan("v1");
  wanted.others.emplace_back("bandwidth");
  refused(wanted, ErrorCode::refused_by_configuration, "bandwidth is not in");
  // What no runtime can run is as good as not there.
  write("bin/bandwidth", "");
  make_executable("bin/bandwidth");
  refused(wanted, ErrorCode::refused_by_configuration, "bin/bandwidth is no program that can be run");
  write("bin/bandwidth", "#!");
  refused(wanted, ErrorCode::refused_by_configuration, "bin/bandwidth is no program that can be run");
  ASSERT_TRUE(os::remove_file_durably(scratch_.file("bin/bandwidth")));
  ASSERT_TRUE(os::make_directories(scratch_.file("bin/bandwidth")));
  refused(wanted, ErrorCode::refused_by_configuration, "bin/bandwidth is no program that can be run");
  std::filesystem::remove(scratch_.file("bin/bandwidth"));
  std::filesystem::create_symlink(scratch_.file("bin/ptp"), scratch_.file("bin/bandwidth"));
  EXPECT_TRUE(installation_.check(wanted)) << "one program under several names";
  std::filesystem::remove(scratch_.file("bin/bandwidth"));
  // Where Debian has them, and a runtime may look.
  const std::string debians = scratch_.file("lib");
  ASSERT_TRUE(os::make_directories(debians));
  const auto remedy = [&](const std::string& programs_on_host) {
    InstallPlace place{programs_, configurations_, programs_on_host};
    place.distributions_programs = debians;
    return Installation(place, [](const std::string&) {}).check(wanted).error().message;
  };
  const std::string is_there = "it is in " + debians;
  EXPECT_THAT(remedy(""), testing::AllOf(Not(HasSubstr(is_there)), HasSubstr("--cni-bin-dir " + debians)));
  write("lib/bandwidth", "theirs");
  EXPECT_THAT(remedy(""), testing::AllOf(HasSubstr(is_there), HasSubstr("--cni-bin-dir " + debians)));
  EXPECT_THAT(remedy("/opt/cni/bin"), Not(HasSubstr(is_there))) << "a container's own directory is no node's";
  Installation nowhere({scratch_.file("no"), configurations_}, [](const std::string&) {});
  const auto done = nowhere.check(plan("v1"));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::not_found);
  EXPECT_THAT(done.error().message, HasSubstr("--cni-bin-dir"));
  EXPECT_TRUE(install(plan("v1"))) << "later names do not win";
}

/// What the record could not name could not be taken back.
TEST_F(InstallationTest, NamesThatAreNotPlainAreRefusedFirst) {
  for (const std::string& name : {std::string(240, 'a') + ".conflist", std::string("a\nb.conflist"),
                                  std::string("../x.conflist"), std::string(".x.conflist")}) {
    const auto done = install(plan("v1", name));
    ASSERT_FALSE(done) << name;
    EXPECT_EQ(done.error().code, ErrorCode::invalid_argument) << done.error().message;
    EXPECT_EQ(read("bin/croft-ipam"), "(not_found)");
  }
}

/// A record that only grows would end as one that is too long to be read.
TEST_F(InstallationTest, HundredsOfVersionsAreTakenBackToo) {
  for (int version = 0; version < 300; ++version) {
    ASSERT_TRUE(install(plan(std::to_string(version)), std::to_string(version))) << version;
  }
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), IsEmpty());
  EXPECT_THAT(os::list_directory(programs_, 10).value(), testing::ElementsAre("ptp"));
}

TEST_F(InstallationTest, HundredsOfNamesAreTakenBackToo) {
  const auto name = [](int number) { return fmt::format("{}-croft.conflist", 1000 + number); };
  write("net.d/" + name(0), R"({"name":"theirs"})");
  for (int number = 0; number < 300; ++number) {
    ASSERT_TRUE(install(plan("v1", name(number)))) << number;
  }
  EXPECT_EQ(read("net.d/" + name(0) + ".before-croft"), R"({"name":"theirs"})");
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), testing::ElementsAre(name(0)))
      << "it was kept, and comes back";
}

/// What can't be forgotten is too much some day: that is told while the record can be read, and nothing was changed.
TEST_F(InstallationTest, MoreNamesThanARecordHasAreRefusedBeforeAnythingIsChanged) {
  const auto name = [](int number) { return fmt::format("{}-croft.conflist", 1999 - number); };
  int number = 0;
  for (; number < 300; ++number) {
    const auto before = everything();
    const auto done = install(plan("v1", name(number)));
    if (done) {
      write("net.d/" + name(number), R"({"name":"edited"})");
      continue;
    }
    EXPECT_THAT(done.error().message, testing::AllOf(HasSubstr("can name 256"), HasSubstr("remove those")));
    EXPECT_EQ(everything(), before);
    break;
  }
  EXPECT_EQ(number, 254) << "beside the program and the kubeconfig";
  EXPECT_TRUE(os::remove_file_durably(scratch_.file("net.d/" + name(7))));
  EXPECT_TRUE(install(plan("v1", name(number))));
}

TEST_F(InstallationTest, WhatKilledInstallationsLeftGoes) {
  const auto leave = [&] {
    for (const char* name :
         {"bin/croft-ipam.77.tmp", "bin/croft-ipam.before-croft.1.tmp", "net.d/croft-kubeconfig.5.tmp",
          "net.d/10-croft.conflist.12345.tmp", "net.d/croft-install.record.9.tmp"})
      write(name, "half");
    for (const char* name : {"bin/ptp.77.tmp", "bin/croft-ipam.x.tmp", "bin/croft-ipam..tmp", "net.d/notes.1.tmp"})
      write(name, "another's");
  };
  ASSERT_TRUE(install(plan("v1")));
  leave();
  ASSERT_TRUE(install(plan("v2")));
  EXPECT_THAT(
      os::list_directory(configurations_, 10).value(),
      testing::UnorderedElementsAre("10-croft.conflist", "croft-install.record", "croft-kubeconfig", "notes.1.tmp"));
  leave();
  ASSERT_TRUE(installation_.take_back(false));
  EXPECT_THAT(os::list_directory(configurations_, 10).value(), testing::ElementsAre("notes.1.tmp"));
  EXPECT_THAT(os::list_directory(programs_, 10).value(),
              testing::UnorderedElementsAre("ptp", "ptp.77.tmp", "croft-ipam.x.tmp", "croft-ipam..tmp"));
}

/// A node that works goes on with what it has when a second installation can't work.
TEST_F(InstallationTest, AProbeThatFailsChangesNothing) {
  const auto refuse = [&](const std::string& kubeconfig) -> Result<void> {
    EXPECT_EQ(os::read_file(kubeconfig, 100).value(), "new") << "it is tried before it is in its place";
    EXPECT_EQ(std::filesystem::status(kubeconfig).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    return fail(ErrorCode::unavailable, "no server");
  };
  for (const bool is_there : {false, true}) {
    write("bin/host-local", "theirs");
    if (is_there) {
      ASSERT_TRUE(install(plan("v1"), "{}", "old"));
    }
    const auto before = everything();
    InstallPlan both = plan("v2", "20-croft.conflist");
    both.programs.push_back({"host-local", "v2"});
    told_.clear();
    const auto done = install(both, "[]", "new", refuse);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "no server");
    EXPECT_EQ(everything(), before);
    EXPECT_THAT(told_, IsEmpty()) << "nothing was done";
  }
}

/// Whichever rename it is that fails: what went before is put back.
TEST_F(InstallationTest, ANetworkThatCameMeanwhileStopsAll) {
  const auto probe = [](const std::string&) { return Result<void>(); };
  const auto last_look = [&] {
    EXPECT_EQ(read("bin/croft-ipam"), "v2") << "all but the network is there";
    EXPECT_EQ(read("net.d/10-croft.conflist"), "{}");
    return Result<void>(fail(ErrorCode::refused_for_safety, "another's"));
  };
  ASSERT_TRUE(install(plan("v1")));
  const auto before = everything();
  const auto refused = installation_.write(plan("v2"), {"secret", R"({"name":"n"})"}, probe, last_look);
  EXPECT_EQ(refused.error().message, "another's");
  EXPECT_EQ(everything(), before);
  // A network that is as it should be is not renamed.
  EXPECT_TRUE(installation_.write(plan("v1"), {"secret", "{}"}, probe, last_look));
}

/// Killed before that, it gave no address: the next one may choose another.
TEST_F(InstallationTest, WhoGivesIsRecordedOnceTheNetworkTakesItsPlaceAndNoSooner) {
  const std::string ptp = R"({"name":"first","plugins":[{"type":"ptp","ipam":{"type":"croft-ipam"}}]})";
  const std::string flannel = R"({"name":"second","plugins":[{"type":"flannel"}]})";
  std::string in_probe, in_last_look;
  const auto probe = [&](const std::string& kubeconfig) -> Result<void> {
    EXPECT_EQ(installation_.draft_of_kubeconfig(plan("v1")), kubeconfig);
    in_probe = installation_.recorded_network().value().name;
    EXPECT_THAT(read("net.d/croft-install.record"), HasSubstr("10-croft.conflist")) << "to be taken back all the same";
    return {};
  };
  const auto last_look = [&]() -> Result<void> {
    in_last_look = installation_.recorded_network().value().name;
    return {};
  };
  ASSERT_TRUE(installation_.write(plan("v1"), {"secret", ptp}, probe, last_look));
  EXPECT_EQ(in_probe + in_last_look, "");
  EXPECT_EQ(installation_.recorded_network().value().addresses_from, "croft-ipam");
  ASSERT_TRUE(installation_.write(plan("v1"), {"secret", flannel}, probe, last_look));
  EXPECT_EQ(in_probe + in_last_look, "firstfirst");
  EXPECT_EQ(installation_.recorded_network().value().name, "second");
  // The file is there, and its giver was not noted: a record that was removed, or of a version that does not know it.
  ASSERT_TRUE(os::remove_file_durably(scratch_.file("net.d/croft-install.record")));
  const auto fails = [](const std::string&) { return Result<void>(fail(ErrorCode::unavailable, "no server")); };
  EXPECT_FALSE(installation_.write(plan("v2"), {"secret", flannel}, fails));
  EXPECT_EQ(read("net.d/croft-install.record"), "(not_found)");
  ASSERT_TRUE(installation_.write(plan("v2"), {"secret", flannel}, probe));
  EXPECT_EQ(in_probe, "second") << "its pods have their addresses by it now";
}

TEST_F(InstallationTest, AFailureInTheMiddleLeavesTheNodeAsItWas) {
  for (const bool is_there : {false, true}) {
    for (const char* in_the_way : {"bin/croft-ipam", "bin/host-local.before-croft", "bin/host-local",
                                   "net.d/croft-kubeconfig", "net.d/20-croft.conflist"}) {
      SCOPED_TRACE(in_the_way);
      fails_at(in_the_way, is_there);
    }
  }
}

TEST_F(InstallationTest, WithoutAKubeconfigNothingIsProbed) {
  InstallPlan wanted = plan("v1");
  wanted.kubeconfig_name.clear();
  ASSERT_TRUE(install(wanted, "{}", "", [](const std::string&) { return fail(ErrorCode::internal, "probed"); }));
  EXPECT_EQ(read("net.d/croft-kubeconfig"), "(not_found)");
  EXPECT_EQ(read("net.d/10-croft.conflist"), "{}");
}

TEST_F(InstallationTest, AnotherNameTakesThePlaceOfTheOld) {
  ASSERT_TRUE(install(plan("v1", "10-croft.conflist")));
  ASSERT_TRUE(install(plan("v1", "20-croft.conflist")));
  EXPECT_EQ(read("net.d/10-croft.conflist"), "(not_found)");
  EXPECT_EQ(read("net.d/20-croft.conflist"), "{}");
}

TEST_F(InstallationTest, ARecordThatCannotBeReadStopsAll) {
  write("net.d/croft-install.record", "{");
  const auto done = install(plan("v1"));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("remove it"));
  EXPECT_FALSE(installation_.take_back(false));
}

}  // namespace
}  // namespace croft::edge
