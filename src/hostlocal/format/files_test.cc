#include "hostlocal/format/files.h"

#include <gtest/gtest.h>

#include "base/net/test_values.h"

// Numbers in brackets are rows of docs/notes/host-local.md#cases.

namespace croft::wire::host_local {
namespace {

using net::Address;

// [1, 9]
TEST(HostLocalFiles, AReservationIsContainerAndInterface) {
  EXPECT_EQ(print_holder({"dummy", "eth0"}), "dummy\r\neth0");
  EXPECT_EQ(print_holder({"   dummy\n ", "eth0"}), "dummy\r\neth0");
  EXPECT_EQ(print_holder({"dummy", ""}), "dummy");
  EXPECT_EQ(parse_holder("dummy\r\neth0"), (Holder{"dummy", "eth0"}));
  EXPECT_EQ(parse_holder("dummy"), (Holder{"dummy", ""}));
}

// [111]
TEST(HostLocalFiles, WhiteSpaceAtTheEndsDoesNotCount) {
  EXPECT_EQ(parse_holder(" dummy\r\neth0 \n"), (Holder{"dummy", "eth0"}));
  EXPECT_EQ(parse_holder("dummy\r\n"), (Holder{"dummy", ""}));
  EXPECT_EQ(parse_holder("\xE2\x80\x83\t dummy\r\neth0\v\f\xC2\x85"), (Holder{"dummy", "eth0"}));
  EXPECT_EQ(holder_key(" dummy\r\neth0 \n"), "dummy\r\neth0");
  EXPECT_EQ(holder_key(" \r\n\xC2\xA0"), "");
  EXPECT_EQ(holder_key(""), "");
}

// A lone byte of UTF-8 is no white space, even if Latin-1 has some there.
TEST(HostLocalFiles, BytesThatAreNotUtf8Count) {
  EXPECT_EQ(holder_key("\x85 dummy\xA0"), "\x85 dummy\xA0");
  EXPECT_EQ(holder_key("dummy\xE2\x80"), "dummy\xE2\x80");
}

// [111]
TEST(HostLocalFiles, WhateverElseItSaysIsTheContainer) {
  EXPECT_EQ(parse_holder("dummy\neth0"), (Holder{"dummy\neth0", ""}));
  EXPECT_EQ(parse_holder("dummy \r\neth0"), (Holder{"dummy ", "eth0"}));
  EXPECT_EQ(parse_holder("dummy\r\neth0\r\neth1"), (Holder{"dummy", "eth0\r\neth1"}));
  EXPECT_EQ(parse_holder(" \n"), (Holder{"", ""}));
}

TEST(HostLocalFiles, AnEmptyReservationSaysNothing) { EXPECT_EQ(parse_holder(""), std::nullopt); }

// [114]
TEST(HostLocalFiles, FilesAreNamedByTheCanonicalText) {
  EXPECT_EQ(file_name(address("10.1.2.3")), "10.1.2.3");
  EXPECT_EQ(file_name(address("2001:0DB8::00ff")), "2001:db8::ff");
  EXPECT_EQ(file_name(address("2001:db8::1.2.3.4")), "2001:db8::102:304");
  EXPECT_EQ(file_name(address("::1.2.3.4")), "::102:304");
  EXPECT_EQ(file_name(address("::ffff:10.1.2.3")), "10.1.2.3");
}

TEST(HostLocalFiles, ANameThatIsAnAddressIsAReservation) {
  EXPECT_EQ(address_of_file("10.1.2.3"), address("10.1.2.3"));
  EXPECT_EQ(address_of_file("2001:DB8::1"), address("2001:db8::1"));
  EXPECT_EQ(address_of_file("::ffff:10.1.2.3"), address("10.1.2.3"));
  for (const char* name : {"", "lock", "last_reserved_ip.0", "10.1.2.3.tmp", " 10.1.2.3", "010.1.2.3", "fe80::1%eth0",
                           "10.1.2.3\n", "2001_db8__1", ".", ".."}) {
    EXPECT_EQ(address_of_file(name), std::nullopt) << name;
  }
}

TEST(HostLocalFiles, ACursorFileIsNamedByTheNumberOfItsSet) {
  EXPECT_EQ(cursor_file_name(0), "last_reserved_ip.0");
  EXPECT_EQ(cursor_file_name(12), "last_reserved_ip.12");
  EXPECT_EQ(set_of_cursor_file("last_reserved_ip.0"), 0U);
  EXPECT_EQ(set_of_cursor_file("last_reserved_ip.18446744073709551615"), 18446744073709551615U);
  for (const char* name :
       {"last_reserved_ip.", "last_reserved_ip", "last_reserved_ip.00", "last_reserved_ip.01", "last_reserved_ip.-1",
        "last_reserved_ip.+1", "last_reserved_ip.1 ", "last_reserved_ip.18446744073709551616", "Last_reserved_ip.1"}) {
    EXPECT_EQ(set_of_cursor_file(name), std::nullopt) << name;
  }
}

// [108]
TEST(HostLocalFiles, ACursorIsExactlyAnAddress) {
  EXPECT_EQ(parse_cursor("10.1.2.7"), address("10.1.2.7"));
  EXPECT_EQ(parse_cursor("2001:db8::7"), address("2001:db8::7"));
  EXPECT_EQ(parse_cursor("::ffff:10.1.2.7"), address("10.1.2.7"));
  for (const char* content : {"garbage", "10.1.2.7\n", "", " 10.1.2.7", "10.1.2.7/24"}) {
    EXPECT_EQ(parse_cursor(content), std::nullopt) << content;
  }
}

}  // namespace
}  // namespace croft::wire::host_local
