#include "register/selector.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace croft::core {
namespace {

using Labels = Selector::Labels;

bool matches(std::string_view text, const Labels& labels) { return Selector::parse(text).value().matches(labels); }

std::string error_of(std::string_view text) {
  const auto selector = Selector::parse(text);
  if (selector) return "no error";
  EXPECT_EQ(selector.error().code, ErrorCode::invalid_argument) << text;
  EXPECT_EQ(selector.error().details, "") << text;
  return selector.error().message;
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Selector, Matches) {
  struct Row {
    std::string text;
    std::vector<Labels> yes;
    std::vector<Labels> no;
  };
  const Row rows[] = {
      {"", {{}, {{"a", "b"}}}, {}},
      {" \t ", {{}, {{"a", "b"}}}, {}},
      {"all()", {{}, {{"a", "b"}}}, {}},
      {"global()", {{}, {{"a", "b"}}}, {}},
      {"!all()", {}, {{}, {{"a", "b"}}}},
      {"has(a)", {{{"a", "b"}}, {{"a", ""}}}, {{}, {{"b", "a"}}, {{"A", "b"}}}},
      {"!has(a)", {{}, {{"b", "a"}}}, {{{"a", ""}}}},
      {"a == 'b'", {{{"a", "b"}}, {{"a", "b"}, {"c", "d"}}}, {{}, {{"a", "B"}}, {{"a", "bb"}}, {{"c", "b"}}}},
      {"a == ''", {{{"a", ""}}}, {{}, {{"a", "b"}}}},
      {"a != 'b'", {{}, {{"a", "c"}}, {{"c", "b"}}}, {{{"a", "b"}}}},
      {"a in {'b', \"c\"}", {{{"a", "b"}}, {{"a", "c"}}}, {{}, {{"a", "d"}}, {{"b", "b"}}}},
      {"a in {}", {}, {{}, {{"a", ""}}}},
      {"a not in {'b', 'c'}", {{}, {{"a", "d"}}, {{"b", "b"}}}, {{{"a", "b"}}, {{"a", "c"}}}},
      {"a not in {}", {{}, {{"a", ""}}}, {}},
      {"a contains 'bc'", {{{"a", "bc"}}, {{"a", "abcd"}}}, {{}, {{"a", "b"}}, {{"a", "acb"}}}},
      {"a contains ''", {{{"a", ""}}, {{"a", "b"}}}, {{}}},
      {"a starts with 'bc'", {{{"a", "bc"}}, {{"a", "bcd"}}}, {{}, {{"a", "b"}}, {{"a", "abc"}}}},
      {"a ends with 'bc'", {{{"a", "bc"}}, {{"a", "abc"}}}, {{}, {{"a", "c"}}, {{"a", "bcd"}}}},
      {"a.b/c-d_9 == 'x'", {{{"a.b/c-d_9", "x"}}}, {{{"a.b/c-d_9", "y"}}}},
      {"a == '\xc3\xb6'", {{{"a", "\xc3\xb6"}}}, {{{"a", "o"}}}},
      {"a == 'x && !y'", {{{"a", "x && !y"}}}, {{{"a", "x"}}}},
  };
  for (const Row& row : rows) {
    for (const Labels& labels : row.yes) EXPECT_TRUE(matches(row.text, labels)) << row.text;
    for (const Labels& labels : row.no) EXPECT_FALSE(matches(row.text, labels)) << row.text;
  }
}

TEST(Selector, NotBindsBeforeAndBeforeOr) {
  const Labels a{{"a", ""}};
  const Labels b{{"b", ""}};
  const Labels c{{"c", ""}};
  EXPECT_TRUE(matches("has(a) || has(b) && has(c)", a));
  EXPECT_FALSE(matches("(has(a) || has(b)) && has(c)", a));
  EXPECT_TRUE(matches("has(b) && has(c) || has(a)", a));
  EXPECT_FALSE(matches("has(b) && (has(c) || has(a))", a));
  EXPECT_FALSE(matches("!has(a) && has(b)", a));
  EXPECT_TRUE(matches("!(has(a) && has(b))", a));
  EXPECT_TRUE(matches("!has(a) || has(b)", b));
  EXPECT_FALSE(matches("!(has(a) || has(b))", b));
  // `!` negates the whole comparison, also where the label is absent.
  EXPECT_TRUE(matches("!a == 'x'", c));
  EXPECT_FALSE(matches("!a != 'x'", c));
  EXPECT_FALSE(matches("!!has(a)", c));
  EXPECT_TRUE(matches("!!!has(a)", c));
}

TEST(Selector, IsWrittenInManyWays) {
  const Labels labels{{"a", "b"}, {"in", "in"}, {"not", "not"}, {"contains", "contains"}, {"-", "x"}};
  for (const char* text :
       {"((all()))", "has( a )", "a=='b'", "a\t==\t'b'", "a startswith'b'", "a ends \t with\"b\"", "a contains\"b\"",
        "a in{'d','b',\"b\",'a'}", "a in {'b',}", "!(a notin {'b'})", "has(a)&&has(in)", "in in {'in'}",
        "contains contains 'contains'", "not not in {'in'}", "- == 'x' && 9 != ''"}) {
    EXPECT_TRUE(matches(text, labels)) << text;
  }
  EXPECT_TRUE(matches("a == 'x\n\xff\\'", {{"a", "x\n\xff\\"}}));
}

TEST(Selector, WhatIsNoneIsRefused) {
  for (const char* text :
       {// No word of the language.
        "=", "a = 'b'", "a === 'b'", "all() &", "all() & all()", "all() &&& all()", "all() |", "\"FOO", "'FOO\"", "%",
        "all() && %", "all()\n", "\xc3\xb6 == 'x'", "a == 'b'\xc2\xa0", "has()", "has('a')", "has(a", "has(a b)",
        "all(", "all(a)", "all (", "global(a)", "a b", "a has(b)", "a ~ 'b'", "a.b/c starts 'b'", "a ends foo 'b'",
        "a containsb", "a inn {'b'}", "a not {'b'}", "a IN {'b'}", ") %",
        // After two words no key may follow, also behind blanks.
        "a starts with b", "a not in b",
        // Their order.
        "a", "a ", "all() && a", "a ==", "a == b", "a != ||", "a contains b", "a contains", "a starts with",
        "a ends with {'b'}", "a in 'b'", "a in", "a not in ('b')", "a in {'', ||", "a in {b}", "a in {,}",
        "a in {'b',,}", "a in {'b' 'c'}", "a in {", "(", "!", "has(a) &&", "has(a) || ", "()", ")", "'b1' == b",
        "== 'b'", "!= 'b'", "&& all()", "all() || || all()", "{}", "}", ",", "a 'b'", "a()", "has (a)", "a)", "a && b",
        "a !", "a ! = 'b'", "a = = 'b'", "(all()", "(all() all())", "((all())", "all())", "all() all()",
        "all() a in {'x', \"y z\"}", "all() a not in b contains c starts with d"}) {
    EXPECT_NE(error_of(text), "no error") << text;
  }
}

TEST(Selector, ErrorsNameWhatIsMissingInOneBoundedLine) {
  const std::pair<std::string, std::string> rows[] = {
      {"zone = 'a'", "expected an operator after the label, found \"= 'a'\""},
      {"zone == a", "expected a string, found \"a\""},
      {"zone == 'a", "unterminated string \"'a\""},
      {"zone in 'a'", "expected {, found \"'a'\""},
      {"zone in {'a'", "expected }, found the end"},
      {"has(zone", "expected ), found the end"},
      {"((", "expected a label, found the end"},
      {"all() & all()", "expected &&, || or the end, found \"& all()\""},
      {"'a\n\x1b\xc3'", R"(expected a label, found "'a\x0a\x1b\xc3'")"},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(error_of(text), expected) << text;
  EXPECT_LE(error_of(repeated("all() ", 10000)).size(), 400U);
}

TEST(Selector, KeysHaveCalicosLimit) {
  const std::string longest(kLabelKeyBytesMax, 'k');
  const std::string longer = longest + 'k';
  EXPECT_TRUE(matches(longest + " == 'v'", {{longest, "v"}}));
  EXPECT_TRUE(matches("has(" + longest + ")", {{longest, "v"}}));
  EXPECT_TRUE(error_of(longer + " == 'v'").starts_with("label too long: "));
  EXPECT_TRUE(error_of("has(" + longer + ")").starts_with("label too long: "));
}

TEST(Selector, LongTexts) {
  std::string text = "has(a)";
  while (text.size() + 10 <= kSelectorBytesMax) text += " || has(a)";
  text.resize(kSelectorBytesMax, ' ');
  EXPECT_TRUE(matches(text, {{"a", ""}}));
  EXPECT_FALSE(matches(text, {}));
  EXPECT_EQ(error_of(text + ' '), "selector is 65537 bytes long; at most 65536 are read");
  EXPECT_FALSE(matches(repeated("!", 60001) + "all()", {}));
  std::string set = "a in {";
  for (int i = 0; i < 5000; ++i) set += "'" + std::to_string(i) + "',";
  EXPECT_TRUE(matches(set + "}", {{"a", "4999"}}));
  EXPECT_FALSE(matches(set + "}", {{"a", "5000"}}));
}

TEST(Selector, DeepTexts) {
  const auto nested = [](std::string_view opened, std::string_view closed, std::size_t depth) {
    return repeated(opened, depth) + "has(a)" + repeated(closed, depth);
  };
  const auto depth = kSelectorNestingMax;
  EXPECT_TRUE(matches(nested("(", ")", depth), {{"a", ""}}));
  EXPECT_EQ(matches(nested("!(", ")", depth - 1), {}), depth % 2 == 0);
  EXPECT_FALSE(matches(nested("(all() && ", ")", depth), {}));
  EXPECT_TRUE(matches(nested("(all() && ", " || all())", depth), {}));
  const std::string_view too_deep = "selector has more than 256 parentheses inside each other";
  for (const std::size_t beyond : {depth + 1, depth * 10}) {
    EXPECT_EQ(error_of(nested("(", ")", beyond)), too_deep);
    EXPECT_EQ(error_of(nested("!(all() || ", ")", beyond)), too_deep);
  }
  EXPECT_EQ(error_of(repeated("(", kSelectorBytesMax)), too_deep);
  EXPECT_NE(error_of(repeated(")", kSelectorBytesMax)), "no error");
  // Beside each other they are no depth.
  EXPECT_TRUE(matches(repeated("(all()) && ", 5000) + "all()", {}));
}

// ---- against a dumb evaluator

struct Tree {
  std::string op;  ///< of the language; "&&", "||" and "!" have operands
  std::string key{};
  std::vector<std::string> values{};
  std::vector<Tree> operands{};
};

bool dumb_compare(const Tree& tree, const std::optional<std::string>& value) {
  const auto& values = tree.values;
  const bool in = value && std::find(values.begin(), values.end(), *value) != values.end();
  if (tree.op == "has") return value.has_value();
  if (tree.op == "==" || tree.op == "in") return in;
  if (tree.op == "!=" || tree.op == "not in") return !in;
  if (!value || value->size() < values.at(0).size()) return false;
  const auto spare = value->size() - values.at(0).size();
  if (tree.op == "starts with") return value->substr(0, values.at(0).size()) == values.at(0);
  if (tree.op == "ends with") return value->substr(spare) == values.at(0);
  for (std::size_t i = 0; i <= spare; ++i) {
    if (value->compare(i, values.at(0).size(), values.at(0)) == 0) return true;
  }
  return false;
}

bool dumb_matches(const Tree& tree, const Labels& labels) {
  const auto holds = [&](const Tree& operand) { return dumb_matches(operand, labels); };
  if (tree.op == "all") return true;
  if (tree.op == "!") return !holds(tree.operands.at(0));
  if (tree.op == "&&") return std::all_of(tree.operands.begin(), tree.operands.end(), holds);
  if (tree.op == "||") return std::any_of(tree.operands.begin(), tree.operands.end(), holds);
  std::optional<std::string> value;
  if (labels.contains(tree.key)) value = labels.at(tree.key);
  return dumb_compare(tree, value);
}

int pick(int end) { return *rc::gen::inRange(0, end); }

std::string random_value() { return *rc::gen::container<std::string>(rc::gen::element('a', 'b', '"', '&', ' ')); }

Tree random_leaf() {
  static const std::vector<std::string> kOps = {"all", "has",    "==",       "!=",          "in",
                                                "in",  "not in", "contains", "starts with", "ends with"};
  Tree tree{.op = *rc::gen::elementOf(kOps), .key = *rc::gen::element<std::string>("a", "b", "in")};
  const int count = tree.op.ends_with("in") ? pick(4) : 1;
  for (int i = 0; i < count; ++i) tree.values.push_back(random_value());
  return tree;
}

Tree random_tree(int depth) {
  const int kind = depth == 0 ? 0 : pick(4);
  if (kind == 0) return random_leaf();
  if (kind == 1) return {.op = "!", .operands = {random_tree(depth - 1)}};
  Tree tree{.op = kind == 2 ? "&&" : "||"};
  const int count = 2 + pick(3);
  for (int i = 0; i < count; ++i) tree.operands.push_back(random_tree(depth - 1));
  return tree;
}

/// Nothing, blanks or tabs.
std::string gap() { return *rc::gen::element<std::string>("", "", " ", "\t "); }

std::string quoted(const std::string& value) {
  const char quote = value.find('"') != value.npos || pick(2) == 0 ? '\'' : '"';
  return quote + value + quote;
}

std::string print_set(const Tree& tree) {
  std::string text = tree.op + gap() + "{" + gap();
  for (const auto& value : tree.values) text += quoted(value) + gap() + "," + gap();
  return text + "}";
}

std::string print_leaf(const Tree& tree) {
  if (tree.op == "all") return "all(" + gap() + ")";
  if (tree.op == "has") return "has(" + gap() + tree.key + gap() + ")";
  if (tree.op.ends_with("in")) return tree.key + " " + print_set(tree);
  return tree.key + " " + tree.op + gap() + quoted(tree.values.at(0));
}

/// How tightly an operator binds.
int rank(const Tree& tree) { return tree.op == "||" ? 0 : tree.op == "&&" ? 1 : 2; }

/// As a person might write it: parentheses where needed, now and then more.
std::string print(const Tree& tree) {
  if (tree.operands.empty()) return print_leaf(tree);
  std::string text = tree.op == "!" ? "!" + gap() : "";
  for (std::size_t i = 0; i < tree.operands.size(); ++i) {
    const Tree& operand = tree.operands[i];
    if (i > 0) text += gap() + tree.op + gap();
    const bool needed = rank(operand) < rank(tree);
    const std::string inner = print(operand);
    text += needed || pick(4) == 0 ? "(" + gap() + inner + gap() + ")" : inner;
  }
  return text;
}

Labels random_labels() {
  Labels labels;
  for (const char* key : {"a", "b", "in"}) {
    if (pick(3) > 0) labels[key] = random_value();
  }
  return labels;
}

RC_GTEST_PROP(SelectorProperty, MeansWhatADumbEvaluatorSays, ()) {
  const Tree tree = random_tree(4);
  const std::string text = gap() + print(tree) + gap();
  RC_LOG() << text << '\n';
  const Selector selector = Selector::parse(text).value();
  for (int i = 0; i < 5; ++i) {
    const Labels labels = random_labels();
    RC_ASSERT(selector.matches(labels) == dumb_matches(tree, labels));
  }
}

RC_GTEST_PROP(SelectorProperty, AnySoupOfWordsIsReadOrRefused, ()) {
  static const std::vector<std::string> kWords = {
      "a",   "has(",     "has(a)", "all()", "global()",    "(",         ")",  "{",  "}",
      ",",   "'x'",      "\"y\"",  "==",    "!=",          "!",         "&&", "||", "in",
      "not", "contains", "starts", "with",  "starts with", "ends with", " "};
  std::string text;
  for (const auto& word : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kWords))) {
    text += word + gap();
  }
  const auto selector = Selector::parse(text);
  if (selector) return;
  RC_ASSERT(selector.error().code == ErrorCode::invalid_argument);
  RC_ASSERT(!selector.error().message.empty());
}

}  // namespace
}  // namespace croft::core
