// What charts look like.

#include "sim/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::sim {
namespace {

using testing::HasSubstr;

Chart rates() {
  return {"ADDs a second",
          "nodes",
          {{"plan", {{10, 1000}, {100, 900}, {1000, 500}}}, {"way=calico", {{10, 250}, {100, 100}, {1000, 7.5}}}}};
}

TEST(Chart, HasABarForEachPointInATerminal) {
  EXPECT_EQ(to_terminal(rates(), 60),
            "ADDs a second\n"
            "nodes\n"
            "   10  plan        █████████████████████████████ 1,000\n"
            "       way=calico  ███████▎ 250\n"
            "  100  plan        ██████████████████████████▏ 900\n"
            "       way=calico  ██▉ 100\n"
            "1,000  plan        ██████████████▌ 500\n"
            "       way=calico  ▎ 7.5\n");
}

TEST(Chart, IsTheSamePictureEachTime) {
  const std::string svg = to_svg(rates());
  EXPECT_EQ(svg, to_svg(rates()));
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("<title>ADDs a second</title>"));
  // Both axes are logarithmic: as far from 10 to 100 as from 100 to 1,000.
  EXPECT_THAT(svg, HasSubstr("points=\"80.0,"));
  EXPECT_THAT(svg, HasSubstr(" 388.0,"));
  EXPECT_THAT(svg, HasSubstr(" 696.0,"));
}

TEST(Chart, EscapesNames) {
  EXPECT_THAT(to_svg({"a < b & c", "x", {{"s", {{1, 1}, {2, 2}}}}}), HasSubstr("<title>a &lt; b &amp; c</title>"));
}

TEST(Chart, OfNothingIsEmpty) {
  EXPECT_THAT(to_svg({"t", "x", {}}), HasSubstr("</svg>"));
  EXPECT_EQ(to_terminal({"t", "x", {}}, 60), "t\nx\n");
}

TEST(Bar, ShowsPartsOfAWhole) {
  EXPECT_EQ(to_bar({{"held", 50, "#"}, {"free", 30, "."}, {"other", 20, "o"}}, 10),
            "#####...oo\n# held 50   . free 30   o other 20\n");
}

TEST(Numbers, AreForPeople) {
  EXPECT_EQ(to_text(0), "0");
  EXPECT_EQ(to_text(0.125), "0.12");
  EXPECT_EQ(to_text(9.5), "9.5");
  EXPECT_EQ(to_text(12.34), "12.3");
  EXPECT_EQ(to_text(12), "12");
  EXPECT_EQ(to_text(1234567), "1,234,567");
}

}  // namespace
}  // namespace croft::sim
