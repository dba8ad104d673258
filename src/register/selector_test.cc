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

TEST(Selector, Errors) {
  const std::string_view no_op = "unexpected end of string looking for op";
  const std::string_view no_string = "expected string";
  const std::pair<std::string, std::string_view> rows[] = {
      // The words.
      {"=", "expected =="},
      {"a = 'b'", "expected =="},
      {"all() &", "expected &&"},
      {"all() & all()", "expected &&"},
      {"all() |", "expected ||"},
      {"\"FOO", "unterminated string"},
      {"'FOO\"", "unterminated string"},
      {"%", "expected identifier"},
      {"all() && %", "expected identifier"},
      {"all()\n", "expected identifier"},
      {"\xc3\xb6 == 'x'", "expected identifier"},
      {"a == 'b'\xc2\xa0", "expected identifier"},
      {"has()", "expected identifier"},
      {"has('a')", "expected identifier"},
      {"has(a", "no closing ')' after has("},
      {"has(a b)", "no closing ')' after has("},
      {"all(", "no closing ')' after all("},
      {"all(a)", "no closing ')' after all("},
      {"global(a)", "no closing ')' after global("},
      {"a b", "expected operator after label \"a\""},
      {"a has(b)", "expected operator after label \"a\""},
      {"a ~ 'b'", "expected operator after label \"a\""},
      {"a.b/c starts 'b'", "expected operator after label \"a.b/c\""},
      {"a ends foo 'b'", "expected operator after label \"a\""},
      {"a containsb", "expected operator after label \"a\""},
      {"a inn {'b'}", "expected operator after label \"a\""},
      {"a not {'b'}", "expected operator after label \"a\""},
      {"a IN {'b'}", "expected operator after label \"a\""},
      // After two words no key may follow, also behind blanks.
      {"a starts with b", "expected operator after label \"a\""},
      {"a not in b", "expected operator after label \"a\""},
      // An error among the words comes before one in their order.
      {") %", "expected identifier"},
      // Their order.
      {"a", no_op},
      {"a ", no_op},
      {"all() && a", no_op},
      {"a ==", no_string},
      {"a == b", no_string},
      {"a != ||", no_string},
      {"a contains b", no_string},
      {"a contains", no_string},
      {"a starts with", no_string},
      {"a ends with {'b'}", no_string},
      {"a in 'b'", "expected set literal"},
      {"a in", "expected set literal"},
      {"a not in ('b')", "expected set literal"},
      {"a in {'', ||", "expected }"},
      {"a in {b}", "expected }"},
      {"a in {,}", "expected }"},
      {"a in {'b' 'c'}", "expected }"},
      {"a in {", "expected }"},
      {"(", "unexpected end"},
      {"!", "unexpected end"},
      {"has(a) &&", "unexpected end"},
      {"has(a) || ", "unexpected end"},
      {"()", "unexpected )"},
      {")", "unexpected )"},
      {"'b1' == b", "unexpected 'b1' == b"},
      {"== 'b'", "unexpected == 'b'"},
      {"!= 'b'", "unexpected != 'b'"},
      {"&& all()", "unexpected && all()"},
      {"all() || || all()", "unexpected || all()"},
      {"{}", "unexpected {}"},
      {"}", "unexpected }"},
      {",", "unexpected ,"},
      {"a 'b'", "expected == or != not: 'b'"},
      {"a()", "expected == or != not: ()"},
      {"has (a)", "expected == or != not: (a)"},
      {"a)", "expected == or != not: )"},
      {"a && b", "expected == or != not: && b"},
      {"a !", "expected == or != not: !"},
      {"(all()", "expected )"},
      {"(all() all())", "expected )"},
      {"((all())", "expected )"},
      {"all())", "unexpected content at end of selector: )"},
      {"all() a in {'x', \"y z\"}", "unexpected content at end of selector: a in {'x', \"y z\"}"},
      {"all() a not in b contains c starts with d", "expected operator after label \"a\""},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(error_of(text), expected) << text;
}

TEST(Selector, MessagesAreOneBoundedLine) {
  EXPECT_EQ(error_of("'a\n\x1b\x7f\\\xc3\xb6'"), "unexpected 'a\\n\\x1b\\x7f\\\xc3\xb6'");
  EXPECT_EQ(error_of(std::string("'\0'", 3)), "unexpected '\\x00'");
  const std::string prefix = "unexpected '";
  const auto room = kSelectorMessageBytesMax - prefix.size() - 1;
  EXPECT_EQ(error_of("'" + std::string(room, 'x') + "'"), prefix + std::string(room, 'x') + "'");
  EXPECT_EQ(error_of("'" + std::string(room + 1, 'x') + "'"), prefix + std::string(room - 2, 'x') + "...");
  // Not in the middle of a character.
  const auto cut = error_of("'" + repeated("\xe2\x82\xac", 1000) + "'");
  EXPECT_LE(cut.size(), kSelectorMessageBytesMax);
  EXPECT_TRUE(cut.ends_with("\xe2\x82\xac...")) << cut;
  EXPECT_LE(error_of(repeated("all() ", 10000)).size(), kSelectorMessageBytesMax);
}

TEST(Selector, KeysHaveCalicosLimit) {
  const std::string longest(kLabelKeyBytesMax, 'k');
  const std::string longer = longest + 'k';
  EXPECT_TRUE(matches(longest + " == 'v'", {{longest, "v"}}));
  EXPECT_TRUE(matches("has(" + longest + ")", {{longest, "v"}}));
  EXPECT_EQ(error_of(longer + " == 'v'"), "label too long: " + longer);
  EXPECT_EQ(error_of("has(" + longer + ")"), "label too long: " + longer);
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
  EXPECT_TRUE(error_of(repeated(")", kSelectorBytesMax)).starts_with("unexpected ))"));
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
