#include "hostlocal/directory/directory_reservations.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hostlocal/directory/index_file.h"
#include "os/clock.h"
#include "os/directory.h"
#include "os/scratch_directory.h"

namespace croft::store::hostlocal {

namespace {

namespace fs = std::filesystem;
using namespace net::literals;
using net::Address;
using net::AddressRange;

/// The real clock, on a machine that can be started anew.
class TestClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override {
    Instant now = real_.now();
    now.boot.bytes[0] = static_cast<std::uint8_t>(now.boot.bytes[0] + boots);
    now.since_boot += later;
    now.wall += wall_later;
    if (at_each_look) at_each_look();
    return now;
  }
  int boots = 0;
  std::chrono::nanoseconds wall_later{};
  std::function<void()> at_each_look;
  std::chrono::nanoseconds later{};

 private:
  os::SystemClock real_;
};

class HostLocalDirectory : public testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<Reservations> open(OpenMode mode = OpenMode::create) const {
    auto opened = open_reservations(scratch_.path(), "net", mode, clock_);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    return *std::move(opened);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch_.file("net/" + name); }
  [[nodiscard]] std::string index_file() const { return index_path(scratch_.path(), "net"); }
  [[nodiscard]] bool has_index() const { return fs::exists(index_file()); }

  void write(const std::string& name, const std::string& content) const {
    fs::create_directories(scratch_.file("net"));
    std::ofstream(path(name), std::ios::binary) << content;
  }
  [[nodiscard]] std::string read(const std::string& name) const { return os::ScratchDirectory::content_of(path(name)); }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> result;
    for (const auto& entry : fs::directory_iterator(scratch_.file("net"))) result.insert(entry.path().filename());
    return result;
  }
  /// `count` reservations and a cursor as another plugin leaves them, from 10.0.0.1 on.
  void fill(std::uint32_t count) const {
    write("last_reserved_ip.0", "10.0.0.1");
    for (std::uint32_t i = 1; i <= count; ++i) {
      write(Address::v4(0x0a000000 + i).to_string(), fmt::format("c{}\r\neth0", i));
    }
  }
  [[nodiscard]] Reserved reserve(const Holder& holder, Address address, std::size_t set = 0) const {
    const NewReservation wanted{address, set};
    const auto reserved = open()->reserve(holder, std::span(&wanted, 1));
    EXPECT_TRUE(reserved) << reserved.error().message;
    return *reserved;
  }
  [[nodiscard]] std::vector<Address> held(const Holder& holder, Care care = Care::quick) const {
    std::vector<Address> addresses;
    const auto reservations = open()->held_by(holder, care).value();
    for (const Reservation& r : reservations) addresses.push_back(r.address);
    return addresses;
  }
  [[nodiscard]] std::optional<Address> next_free() const {
    return open()->next_free(AddressRange::of(net::Prefix::parse("10.0.0.0/16").value())).value();
  }
  [[nodiscard]] bool index_counts() const {
    const auto directory = os::Directory::open(scratch_.file("net")).value();
    return View::open(index_file(), directory.stamp().value(), clock_) != nullptr;
  }

  os::ScratchDirectory scratch_;
  TestClock clock_;
};

const Holder kDummy{"dummy", "eth0"};

TEST_F(HostLocalDirectory, WritesTheFilesOfTheReference) {
  ASSERT_EQ(reserve(kDummy, "10.1.2.2"_ip), Reserved::done);
  ASSERT_EQ(reserve({"other", ""}, "2001:db8::1"_ip, 1), Reserved::done);
  EXPECT_EQ(names(),
            (std::set<std::string>{"10.1.2.2", "2001:db8::1", "last_reserved_ip.0", "last_reserved_ip.1", "lock"}));
  EXPECT_EQ(read("10.1.2.2"), "dummy\r\neth0");
  EXPECT_EQ(read("2001:db8::1"), "other");
  EXPECT_EQ(read("last_reserved_ip.0"), "10.1.2.2");
  EXPECT_EQ(read("last_reserved_ip.1"), "2001:db8::1");
  EXPECT_EQ(read("lock"), "");
  EXPECT_EQ(fs::status(path("10.1.2.2")).permissions(), fs::perms(0600));
  EXPECT_EQ(fs::status(path("last_reserved_ip.0")).permissions(), fs::perms(0600));
}

TEST_F(HostLocalDirectory, AShorterCursorLeavesNothingOfTheLongerOne) {
  ASSERT_EQ(reserve(kDummy, "10.100.200.201"_ip), Reserved::done);
  ASSERT_EQ(reserve(kDummy, "10.1.2.3"_ip), Reserved::done);
  EXPECT_EQ(read("last_reserved_ip.0"), "10.1.2.3");
  EXPECT_EQ(open()->cursor(0).value(), "10.1.2.3"_ip);
  EXPECT_EQ(open()->cursor(1).value(), std::nullopt);
}

TEST_F(HostLocalDirectory, WhatIsTakenStaysAndNothingIsLeftBehind) {
  write("10.1.2.3", "other\r\neth0");
  const auto reservations = open();
  const std::vector<NewReservation> wanted{{"10.1.2.2"_ip, 0}, {"10.1.2.3"_ip, 1}};
  EXPECT_EQ(reservations->reserve(kDummy, wanted).value(), Reserved::taken);
  EXPECT_EQ(read("10.1.2.3"), "other\r\neth0");
  EXPECT_FALSE(names().contains("10.1.2.2"));
  EXPECT_FALSE(names().contains(".croft.new.0"));
}

TEST_F(HostLocalDirectory, AnEmptyFileThatSomebodyMayBeWritingIsTaken) {
  write("10.0.0.1", "");
  EXPECT_TRUE(open()->is_taken("10.0.0.1"_ip).value());
  EXPECT_EQ(reserve(kDummy, "10.0.0.1"_ip), Reserved::taken);
  EXPECT_EQ(read("10.0.0.1"), "");
}

TEST_F(HostLocalDirectory, AnEmptyFileIsNobodysAndIsTakenOver) {
  write("10.0.0.1", "");
  fs::last_write_time(path("10.0.0.1"), fs::file_time_type::clock::now() - std::chrono::seconds(11));
  EXPECT_EQ(next_free(), "10.0.0.0"_ip);
  EXPECT_FALSE(open()->is_taken("10.0.0.1"_ip).value());
  ASSERT_EQ(reserve(kDummy, "10.0.0.1"_ip), Reserved::done);
  EXPECT_EQ(read("10.0.0.1"), "dummy\r\neth0");
}

TEST_F(HostLocalDirectory, ADirectoryOrALinkToNothingIsTaken) {
  fs::create_directories(path("10.0.0.0"));
  fs::create_symlink("nowhere", path("10.0.0.1"));
  EXPECT_EQ(next_free(), "10.0.0.2"_ip);
  EXPECT_TRUE(open()->is_taken("10.0.0.0"_ip).value());
  EXPECT_TRUE(open()->is_taken("10.0.0.1"_ip).value());
  EXPECT_EQ(reserve(kDummy, "10.0.0.0"_ip), Reserved::taken);
  EXPECT_EQ(reserve(kDummy, "10.0.0.1"_ip), Reserved::taken);
}

TEST_F(HostLocalDirectory, ALeftoverOfADeadCallHarmsNobody) {
  write("10.1.2.9", "live\r\neth0");
  fs::create_hard_link(path("10.1.2.9"), path(".croft.new.0"));  // died between link and unlink
  ASSERT_EQ(reserve(kDummy, "10.1.2.2"_ip), Reserved::done);
  EXPECT_EQ(read("10.1.2.9"), "live\r\neth0");
  EXPECT_EQ(read("10.1.2.2"), "dummy\r\neth0");
}

TEST_F(HostLocalDirectory, ReleasesOnlyWhatIsAsItWasRead) {
  write("10.0.0.5", "dummy\r\neth0");
  write("10.0.0.6", "dummy\r\neth0");
  const auto reservations = open();
  const auto held = reservations->held_by(kDummy, Care::thorough).value();
  ASSERT_EQ(held.size(), 2U);
  write("10.0.0.6", "somebody else");
  ASSERT_TRUE(reservations->release(held));
  EXPECT_EQ(names(), (std::set<std::string>{"10.0.0.6", "lock"}));
}

TEST_F(HostLocalDirectory, ADirectoryInPlaceOfAFileIsAnErrorOfRelease) {
  write("10.0.0.5", "dummy\r\neth0");
  const auto reservations = open();
  auto held = reservations->held_by(kDummy, Care::thorough).value();
  held[0].holder = std::nullopt;
  fs::remove(path("10.0.0.5"));
  fs::create_directories(path("10.0.0.5"));
  const auto released = reservations->release(held);
  ASSERT_FALSE(released);
  EXPECT_NE(released.error().message.find("remove " + path("10.0.0.5") + ": "), std::string::npos);
}

TEST_F(HostLocalDirectory, FindsHoldersByContentAndKnowsForeignFiles) {
  write("10.0.0.1", " dummy\r\neth0 \n");
  write("10.0.0.2", "dummy");
  write("10.0.0.3", "dummy\neth0");
  write("2001:DB8::7", "dummy\r\neth0");  // an address, in a form no plugin writes
  write("10.0.0.4", "reserved for the printer in room 5");
  write("notes.txt", "dummy\r\neth0");
  write("last_reserved_ip.0", "dummy");
  const auto reservations = open();
  const auto exact = reservations->held_by(kDummy, Care::quick).value();
  ASSERT_EQ(exact.size(), 2U);
  EXPECT_EQ(exact[0].file, "10.0.0.1");
  EXPECT_EQ(exact[1].file, "2001:DB8::7");
  const auto container = reservations->held_by({"dummy", ""}, Care::quick).value();
  ASSERT_EQ(container.size(), 1U);
  EXPECT_EQ(container[0].address, "10.0.0.2"_ip);
  const auto all = reservations->list().value();
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0].holder, kDummy);
  EXPECT_FALSE(all[3].holder) << "a note names nobody";
  write("last_reserved_ip.1", "10.0.0.3");
  write(".croft.new", "");
  const auto directory = read_directory(scratch_.file("net")).value();
  EXPECT_EQ(directory.reservations, all);
  ASSERT_EQ(directory.cursors.size(), 2U);
  EXPECT_FALSE(directory.cursors[0].address);
  EXPECT_EQ(directory.cursors[1].address, "10.0.0.3"_ip);
  EXPECT_EQ(directory.foreign, std::vector<std::string>{"notes.txt"});
  EXPECT_EQ(read_directory(scratch_.file("none")).error().code, ErrorCode::not_found);
}

TEST_F(HostLocalDirectory, AnExistingDirectoryIsAskedForAndMissed) {
  const auto opened = open_reservations(scratch_.path(), "net", OpenMode::existing, clock_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::not_found);
  EXPECT_EQ(opened.error().message, "open " + scratch_.file("net") + ": no such file or directory");
}

TEST_F(HostLocalDirectory, TheLockExcludesAndTimesOut) {
  const auto first = open();
  const auto second =
      open_reservations(scratch_.path(), "net", OpenMode::create, clock_, std::chrono::milliseconds(20));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::deadline_exceeded);
}

// ---------------------------------------------------------------- the index

TEST_F(HostLocalDirectory, ASmallDirectoryHasNoIndex) {
  fill(kIndexedCountMin - 2);
  ASSERT_EQ(reserve(kDummy, "10.0.9.9"_ip), Reserved::done);
  EXPECT_EQ(next_free(), "10.0.0.0"_ip);
  EXPECT_FALSE(has_index());
}

TEST_F(HostLocalDirectory, ALargeOneGetsOneThatFollowsEveryChange) {
  fill(300);
  EXPECT_EQ(next_free(), "10.0.0.0"_ip);
  ASSERT_TRUE(index_counts());
  for (std::uint32_t i = 0; i < 100; ++i) {
    const Address address = Address::v4(0x0a000200 + i);
    ASSERT_EQ(reserve(kDummy, address), Reserved::done);
    ASSERT_TRUE(index_counts());
    ASSERT_EQ(held(kDummy), std::vector{address});
    const auto reservations = open();
    ASSERT_TRUE(reservations->release(reservations->held_by(kDummy, Care::quick).value()));
  }
  ASSERT_TRUE(index_counts());
  EXPECT_TRUE(held(kDummy).empty());
  EXPECT_EQ(held({"c17", "eth0"}), std::vector{"10.0.0.17"_ip});
}

TEST_F(HostLocalDirectory, AnIndexGrowsWithItsDirectory) {
  fill(40);
  for (std::uint32_t i = 0; i < 600; ++i) {
    ASSERT_EQ(reserve({fmt::format("n{}", i), "eth0"}, Address::v6({0x20010db800000000, std::uint64_t{i} * 1000})),
              Reserved::done);
  }
  for (std::uint32_t i = 0; i < 600; i += 97) {
    ASSERT_EQ(held({fmt::format("n{}", i), "eth0"}).size(), 1U);
  }
  EXPECT_EQ(open()->list().value().size(), 640U);
}

TEST_F(HostLocalDirectory, AForeignChangeInTheSameClockTickIsSeen) {
  fill(64);
  static_cast<void>(next_free());
  for (std::uint32_t i = 0; i < 120; ++i) {
    const Address ours = Address::v4(0x0a010000 + i);
    const Address theirs = Address::v4(0x0a020000 + i);
    ASSERT_EQ(reserve({fmt::format("ours{}", i), "eth0"}, ours), Reserved::done);
    const Holder foreign{fmt::format("theirs{}", i), "eth0"};
    write(theirs.to_string(), foreign.container_id + "\r\neth0");
    ASSERT_FALSE(index_counts());
    ASSERT_EQ(held(foreign), std::vector{theirs});
    fs::remove(path(theirs.to_string()));
    ASSERT_FALSE(index_counts());
    ASSERT_TRUE(held(foreign).empty());
  }
}

/// On a coarse clock a change right before the look and one during it would have one stamp. So a directory that was
/// changed a moment ago is marked before what becomes an index is read: then the second change takes the mark away.
TEST_F(HostLocalDirectory, WhatChangedInThisTickIsReadUnderAMark) {
  const auto marked = [&] {
    const auto stamp = os::Directory::open(scratch_.file("net"))->stamp();
    return stamp->modified_ns != stamp->changed_ns;
  };
  // The clock is asked for each file that is empty: so the test is there while the files are read.
  constexpr int kEmptyFiles = 20;
  struct Looks {
    int under_a_mark = 0;
    int without = 0;
  };
  const auto looks_of_a_rebuild = [&] {
    Looks looks;
    fs::remove(index_file());
    write("10.0.0.90", "c90\r\neth0");
    fs::remove(path("10.0.0.90"));
    clock_.at_each_look = [&] { ++(marked() ? looks.under_a_mark : looks.without); };
    EXPECT_TRUE(open()->held_by({"nobody", ""}, Care::quick)->empty());
    clock_.at_each_look = {};
    EXPECT_TRUE(has_index());
    return looks;
  };
  fill(40);
  for (std::uint32_t i = 0; i < kEmptyFiles; ++i) {
    const std::string name = Address::v4(0x0a000064 + i).to_string();
    write(name, "");
    fs::last_write_time(path(name), fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  clock_.wall_later = -std::chrono::seconds(1);
  const Looks young = looks_of_a_rebuild();
  EXPECT_GE(young.under_a_mark, kEmptyFiles);
  EXPECT_GE(young.without, kEmptyFiles);
  // What has been so for a while is read once.
  clock_.wall_later = std::chrono::seconds(1);
  const Looks old = looks_of_a_rebuild();
  EXPECT_LT(old.under_a_mark, kEmptyFiles);
  EXPECT_LT(old.without, 2 * kEmptyFiles);
}

TEST_F(HostLocalDirectory, AnIndexOfAnotherBootOrTooOldOrOfAnotherDirectoryDoesNotCount) {
  fill(64);
  static_cast<void>(next_free());
  ASSERT_TRUE(index_counts());
  clock_.later = kIndexAgeMax - std::chrono::minutes(1);
  EXPECT_TRUE(index_counts());
  clock_.later = kIndexAgeMax + std::chrono::seconds(1);
  EXPECT_FALSE(index_counts());
  clock_.later = {};
  clock_.boots = 1;
  EXPECT_FALSE(index_counts());
  clock_.boots = 0;
  ASSERT_TRUE(index_counts());
  fs::rename(scratch_.file("net"), scratch_.file("old"));
  fs::create_directories(scratch_.file("net"));
  EXPECT_FALSE(index_counts());
  EXPECT_EQ(held({"c17", "eth0"}).size(), 0U);
}

TEST_F(HostLocalDirectory, TimesSetBackByHandDoNotReviveAnIndex) {
  fill(64);
  static_cast<void>(next_free());
  ASSERT_TRUE(index_counts());
  const auto directory = os::Directory::open(scratch_.file("net")).value();
  const auto stamp = directory.stamp().value();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  write("10.0.7.7", "theirs\r\neth0");
  ASSERT_TRUE(directory.set_modified(stamp.modified_ns));  // `touch -r`
  EXPECT_FALSE(index_counts());
}

TEST_F(HostLocalDirectory, AReservationEditedInPlaceIsFoundByACarefulLook) {
  fill(64);
  static_cast<void>(next_free());
  write("10.0.0.5", "edited\r\neth0");
  ASSERT_TRUE(index_counts());  // the directory was not changed
  EXPECT_TRUE(held({"edited", "eth0"}, Care::quick).empty());
  EXPECT_EQ(held({"edited", "eth0"}, Care::thorough), std::vector{"10.0.0.5"_ip});
  EXPECT_TRUE(held({"c5", "eth0"}).empty());
}

TEST_F(HostLocalDirectory, WhatTheIndexSaysIsReadFromTheFileBeforeItIsBelieved) {
  fill(64);
  static_cast<void>(next_free());
  write("10.0.0.5", "edited\r\neth0");
  EXPECT_TRUE(held({"c5", "eth0"}).empty());  // the index knows c5 at 10.0.0.5
  EXPECT_EQ(held({"edited", "eth0"}), std::vector{"10.0.0.5"_ip});
}

TEST_F(HostLocalDirectory, SomebodyWhoDoesNotLockIsMetAtTheFile) {
  fill(64);
  static_cast<void>(next_free());
  const auto reservations = open();
  const AddressRange range = AddressRange::of(net::Prefix::parse("10.0.5.0/24").value());
  ASSERT_EQ(reservations->next_free(range).value(), "10.0.5.0"_ip);
  write("10.0.5.0", "theirs\r\neth0");
  const NewReservation wanted{"10.0.5.0"_ip, 0};
  EXPECT_EQ(reservations->reserve(kDummy, std::span(&wanted, 1)).value(), Reserved::taken);
  EXPECT_EQ(reservations->next_free(range).value(), "10.0.5.1"_ip);
  EXPECT_EQ(read("10.0.5.0"), "theirs\r\neth0");
}

TEST_F(HostLocalDirectory, AChangeBetweenTheLookAndOurOwnIsNotTakenForOurs) {
  fill(64);
  static_cast<void>(next_free());
  ASSERT_TRUE(index_counts());
  {
    const auto reservations = open();
    ASSERT_TRUE(reservations->held_by(kDummy, Care::quick));  // the index is in use
    write("10.0.6.6", "restored\r\neth0");                    // by somebody who does not lock
    fs::remove(path("10.0.0.7"));
    const NewReservation wanted{"10.0.5.0"_ip, 0};
    ASSERT_EQ(reservations->reserve(kDummy, std::span(&wanted, 1)).value(), Reserved::done);
  }
  EXPECT_FALSE(index_counts());
  EXPECT_EQ(held({"restored", "eth0"}), std::vector{"10.0.6.6"_ip});
  EXPECT_EQ(open()->next_free(AddressRange::make("10.0.0.1"_ip, "10.0.0.64"_ip).value()).value(), "10.0.0.7"_ip);
}

TEST_F(HostLocalDirectory, AYoungEmptyFileMakesNoIndexThatWouldKeepItTaken) {
  fill(64);
  write("10.0.0.70", "");
  EXPECT_TRUE(held(kDummy).empty());
  EXPECT_FALSE(index_counts());
}

TEST_F(HostLocalDirectory, WhatCouldNotBeReadMakesNoIndex) {
  fill(64);
  write("10.0.0.7", std::string(200'000, 'x'));
  EXPECT_TRUE(held(kDummy).empty());
  EXPECT_FALSE(index_counts());
  const auto reservations = open();
  static_cast<void>(reservations->held_by(kDummy, Care::thorough));
  EXPECT_TRUE(reservations->unreadable());
}

TEST_F(HostLocalDirectory, ADamagedIndexIsNoIndex) {
  fill(200);
  static_cast<void>(next_free());
  ASSERT_TRUE(index_counts());
  const std::string whole = os::ScratchDirectory::content_of(index_file());
  const auto put = [&](const std::string& bytes) { std::ofstream(index_file(), std::ios::binary) << bytes; };
  for (std::size_t at = 0; at < 104; ++at) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    put(bad);
    ASSERT_FALSE(index_counts()) << at;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{50}, std::size_t{4096}, whole.size() - 1}) {
    put(whole.substr(0, size));
    ASSERT_FALSE(index_counts()) << size;
  }
  // Tables that lie: nothing but zeros, nothing but ones. Answers are found wrong, or true for another reason.
  for (const char fill_byte : {'\0', '\xff'}) {
    put(whole.substr(0, 4096) + std::string(whole.size() - 4096, fill_byte));
    ASSERT_EQ(held({"c17", "eth0"}, Care::thorough), std::vector{"10.0.0.17"_ip});
    const auto address = next_free();
    ASSERT_TRUE(!address || !names().contains(address->to_string()) || reserve(kDummy, *address) == Reserved::taken);
    ASSERT_EQ(open()->list().value().size(), 200U);
  }
}

TEST_F(HostLocalDirectory, ALostIndexCostsNothingButARebuild) {
  fill(100);
  static_cast<void>(next_free());
  fs::remove_all(scratch_.file(".croft"));
  EXPECT_EQ(held({"c17", "eth0"}), std::vector{"10.0.0.17"_ip});
  EXPECT_TRUE(index_counts());
}

TEST_F(HostLocalDirectory, WhereNoIndexCanBeMadeEveryCallReadsTheFiles) {
  fill(100);
  std::ofstream(scratch_.file(".croft")) << "in the way";
  EXPECT_EQ(held({"c17", "eth0"}), std::vector{"10.0.0.17"_ip});
  ASSERT_EQ(reserve(kDummy, "10.0.1.1"_ip), Reserved::done);
  EXPECT_EQ(held(kDummy), std::vector{"10.0.1.1"_ip});
  EXPECT_FALSE(index_counts());
}

TEST_F(HostLocalDirectory, ADirectoryRemovedWhileSomebodyWaitsForTheLockIsMadeAnew) {
  auto first = open();
  auto second = std::unique_ptr<Reservations>();
  std::thread waiting([&] { second = open(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  fs::rename(scratch_.file("net"), scratch_.file("gone"));
  first.reset();
  waiting.join();
  const NewReservation wanted{"10.0.5.0"_ip, 0};
  ASSERT_EQ(second->reserve(kDummy, std::span(&wanted, 1)).value(), Reserved::done);
  EXPECT_EQ(read("10.0.5.0"), "dummy\r\neth0");
}

/// A look at all of them, as before they move: what a link leads to is no reservation of this directory's.
TEST_F(HostLocalDirectory, AListReadsNothingThroughLinksAndWaitsForNobody) {
  write("10.0.0.1", "dummy\r\neth0");
  std::ofstream(scratch_.file("target"), std::ios::binary) << "dummy\r\neth0";
  fs::create_symlink(scratch_.file("target"), path("10.0.0.2"));
  fs::create_symlink("/dev/zero", path("10.0.0.3"));
  ASSERT_EQ(::mkfifo(path("10.0.0.4").c_str(), 0600), 0);
  fs::create_symlink("10.0.0.4", path("10.0.0.5"));
  write("10.0.0.6", "");
  fs::resize_file(path("10.0.0.6"), std::uintmax_t{1} << 36);
  const auto all = open()->list().value();
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[0].holder, kDummy);
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_FALSE(all[i].holder) << all[i].file;
    EXPECT_FALSE(all[i].empty) << all[i].file;
  }
  EXPECT_EQ(held(kDummy, Care::thorough), (std::vector{"10.0.0.1"_ip, "10.0.0.2"_ip})) << "as the reference's DEL";
}

TEST_F(HostLocalDirectory, WhileAnotherPluginHasTheLockNothingIsRead) {
  write("10.0.0.1", "dummy\r\neth0");
  const int lock = ::open(path("lock").c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0750);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  const auto refused =
      open_reservations(scratch_.path(), "net", OpenMode::existing, clock_, std::chrono::nanoseconds{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::deadline_exceeded);
  ::close(lock);
  EXPECT_TRUE(open_reservations(scratch_.path(), "net", OpenMode::existing, clock_, std::chrono::nanoseconds{}));
}

}  // namespace

}  // namespace croft::store::hostlocal
