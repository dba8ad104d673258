// The tree of commands as a whole, and what is made of it: help, suggestions, completions, man pages.

#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_model.h"
#include "cli/croft/command_line.h"
#include "cli/croft/listing.h"
#include "os/clock.h"

namespace croft::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A whole program but for main().
struct Program {
  os::SystemClock clock;
  os::SystemRandom random;
  CommandLine line{"", CommandLine::Output::table, "auto", {}, clock, random, nullptr};
  CLI::App app{"Croft", "croft"};
  Program() {
    app.set_version_flag("--version", "0");
    add_everything(app, line);
  }
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

class CommandTree : public testing::Test {
 protected:
  CommandModel model = model_of(Program().app, examples_of);

  std::string error(const std::string& arguments) { return usage_error(model, words_of(arguments)).value_or("none"); }
  /// Every command below, with its names.
  static void each(const CommandModel& command, const std::vector<std::string>& path, const auto& visit) {
    visit(command, path);
    for (const CommandModel& one : command.commands) {
      std::vector<std::string> below = path;
      below.push_back(one.name);
      each(one, below, visit);
    }
  }
};

TEST_F(CommandTree, WhatDoesNotExistIsNamedWithWhatIsMeant) {
  EXPECT_EQ(error("pol list"), "`croft` has no command \"pol\"; did you mean \"pool\"?");
  EXPECT_EQ(error("pool lst"), "`croft pool` has no command \"lst\"; did you mean \"list\"?");
  EXPECT_EQ(error("pool create a --cdir 10.0.0.0/8"),
            "`croft pool create` has no option \"--cdir\"; did you mean \"--cidr\"?");
  EXPECT_EQ(error("--store x node range asign n"),
            "`croft node range` has no command \"asign\"; did you mean \"assign\"?");
  EXPECT_THAT(error("frobnicate"), HasSubstr("has no command \"frobnicate\"; there are pool, block, ip, "));
  EXPECT_THAT(error("ip list -x"), HasSubstr("has no option \"-x\""));
  EXPECT_THAT(error("pool list nope"), HasSubstr("takes no argument, and was given \"nope\""));
  EXPECT_THAT(error("\x1b[2J"), Not(HasSubstr("\x1b")));
}

TEST_F(CommandTree, AMissingCommandIsAskedFor) {
  EXPECT_THAT(error(""), HasSubstr("`croft` needs a command: pool, block, ip, "));
  EXPECT_THAT(error("pool"), HasSubstr("`croft pool` needs a command: create, list, show, "));
  EXPECT_EQ(error("history web-1 --limit 0"), "none");  // the parser says what --limit takes
  EXPECT_EQ(error("pool create a"), "none");            // the parser says that --cidr is missing
}

/// Something may be lost by it.
TEST_F(CommandTree, WhatTakesSomethingAwayCanBeTriedBefore) {
  each(model, {}, [](const CommandModel& command, const std::vector<std::string>& path) {
    const bool takes = command.name == "delete" || command.name == "remove" || command.name == "release";
    if (!takes) return;
    const auto is_dry_run = [](const auto& option) { return std::ranges::count(option.names, "--dry-run") > 0; };
    EXPECT_TRUE(std::ranges::any_of(command.options, is_dry_run)) << testing::PrintToString(path);
  });
}

TEST_F(CommandTree, SingularAndPluralAreOne) {
  for (const char* text : {"pools ls", "pool list", "nodes list", "node ranges ls", "ips ls", "services ls"}) {
    Program program;
    std::vector<std::string> words = words_of(text);
    std::reverse(words.begin(), words.end());
    EXPECT_NO_THROW(program.app.parse(words)) << text;
  }
  EXPECT_THAT(command_path(model, words_of("nodes ranges ls --no-headers")), ElementsAre("node", "range", "list"));
}

TEST_F(CommandTree, EveryHelpIsInPlainWordsAndShowsItsOwnExamples) {
  each(model, {}, [&](const CommandModel&, const std::vector<std::string>& path) {
    const std::string help = help_page(model, path);
    const std::string name = testing::PrintToString(path);
    EXPECT_THAT(help, HasSubstr("--store STORE")) << name;
    EXPECT_THAT(help, HasSubstr("-o, --output json|table|wide|yaml")) << name;
    for (const char* shape : {"->", " INT ", "INT:", " TEXT ", "TEXT:", "FLOAT", " in [", "{", "BOOLEAN"}) {
      EXPECT_THAT(help, Not(HasSubstr(shape))) << name;
    }
    std::string typed = "croft";
    for (const std::string& word : path) typed += " " + word;
    std::string path_text = path.empty() ? "" : typed.substr(6);
    const std::vector<std::string> examples = examples_of(path_text);
    EXPECT_FALSE(examples.empty()) << name;
    for (const std::string& example : examples) {
      EXPECT_THAT(example, HasSubstr(typed)) << name;
      EXPECT_THAT(help, HasSubstr(example)) << name;
    }
  });
}

TEST_F(CommandTree, EveryExampleIsACommandLineThatCanBeRead) {
  each(model, {}, [&](const CommandModel&, const std::vector<std::string>& path) {
    std::string path_text;
    for (const std::string& word : path) path_text += (path_text.empty() ? "" : " ") + word;
    for (const std::string& example : examples_of(path_text)) {
      std::vector<std::string> words = words_of(example);
      if (words.front() != "croft") continue;  // of a shell
      Program program;
      std::reverse(words.begin() + 1, words.end());
      words.erase(words.begin());
      EXPECT_NO_THROW(program.app.parse(words)) << example;
      EXPECT_TRUE(program.line.run) << example;
    }
  });
}

TEST(PlainValue, SaysWhatAnOptionTakes) {
  EXPECT_EQ(plain_value("TEXT:{auto,always}"), "auto|always");
  EXPECT_EQ(plain_value("TEXT:value in {table->0,json->2} OR {0,2}"), "table|json");
  EXPECT_EQ(plain_value("DURATION:INT TIME:INT in [0 - 604800]"), "DURATION");
  EXPECT_EQ(plain_value("UINT:INT in [1 - 64]"), "1 to 64");
  EXPECT_EQ(plain_value("UINT"), "NUMBER");
  EXPECT_EQ(plain_value("COLUMN"), "COLUMN");
}

TEST_F(CommandTree, CompletionsKnowCommandsOptionsAndChoices) {
  const auto asked = [&](const std::string& before, const std::string& word) {
    std::vector<std::string> words = words_of(before);
    words.push_back(word);
    return completions(model, std::move(words));
  };
  EXPECT_THAT(asked("", "po"), AllOf(HasSubstr("pool\t"), Not(HasSubstr("pools\t")), Not(HasSubstr("--store\t"))));
  EXPECT_THAT(asked("--store x pools", ""), HasSubstr("list\tList all pools with their usage\n"));
  EXPECT_THAT(asked("pool create a", "-"), AllOf(HasSubstr("--cidr\t"), HasSubstr("--store\t")));
  EXPECT_THAT(asked("pool create a", "-"), Not(HasSubstr("--version\t")));
  EXPECT_THAT(asked("ip ls --state", ""), AllOf(StartsWith("held\t"), HasSubstr("\ncooling\t")));
  EXPECT_THAT(asked("ip list -o", "j"), StartsWith("json\t"));
  EXPECT_THAT(asked("ip list", "--output=j"), StartsWith("--output=json\t"));
  for (const char* files : {"store backup", "ip list --node", "ip nosuch", "pool create --nosuch", "pool list a"}) {
    EXPECT_EQ(asked(files, ""), "") << files;
  }
  each(model, {}, [&](const CommandModel& command, const std::vector<std::string>&) {
    EXPECT_EQ(command.description.find_first_of("\t\n"), std::string::npos) << command.name;
    for (const OptionModel& option : command.options) {
      EXPECT_EQ(option.description.find_first_of("\t\n"), std::string::npos) << option.names.back();
    }
  });
}

TEST_F(CommandTree, EveryCommandHasAManPage) {
  std::size_t commands = 0;
  each(model, {}, [&](const CommandModel&, const std::vector<std::string>&) { ++commands; });
  const std::vector<ManPage> pages = man_pages(model, "1.2");
  EXPECT_EQ(pages.size(), commands);
  EXPECT_EQ(pages.front().file, "croft.1");
  for (const ManPage& page : pages) {
    EXPECT_TRUE(page.text.starts_with(".TH CROFT")) << page.file;
    for (const char* section : {".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH EXIT STATUS\n"}) {
      EXPECT_THAT(page.text, HasSubstr(section)) << page.file;
    }
    std::istringstream lines(page.text);
    for (std::string line; std::getline(lines, line);) {
      const bool is_request =
          line.starts_with(".TH ") || line.starts_with(".SH ") || line == ".TP" || line == ".nf" || line == ".fi";
      EXPECT_TRUE(is_request || (!line.starts_with('.') && !line.starts_with('\''))) << page.file << ": " << line;
    }
  }
}

TEST(Selectors, AreThoseOfKubectl) {
  const std::map<std::string, std::string> labels{{"zone", "a"}, {"ssd", ""}};
  const auto matches = [&](const char* text) { return LabelSelector::parse(text).value().matches(labels); };
  for (const char* text : {"", "zone=a", "zone==a", "zone!=b", "ssd", "!old", "rack!=7", "zone=a,ssd,!old"}) {
    EXPECT_TRUE(matches(text)) << text;
  }
  for (const char* text : {"zone=b", "zone!=a", "old", "!ssd", "zone=a,old", "rack=7"})
    EXPECT_FALSE(matches(text)) << text;
  for (const char* text : {"=a", ",", "zone=a,,ssd", "!", "zone in (a)"})
    EXPECT_FALSE(LabelSelector::parse(text)) << text;
}

TEST(Watch, PrintsRowsThatChangedAndNamesThoseThatWent) {
  EXPECT_EQ(
      changed_lines({"NAME   HELD", "a      1", "b      2"}, {"NAME        HELD", "a           1", "long-name   3"}),
      "long-name   3\nb   gone\n");
  EXPECT_EQ(changed_lines({"NAME   HELD", "a      1"}, {"NAME   HELD", "a      1"}), "");
  EXPECT_EQ(changed_lines({"NAME   HELD", "a      1"}, {"NAME   HELD", "a      2"}), "a      2\n");
}

}  // namespace
}  // namespace croft::app
