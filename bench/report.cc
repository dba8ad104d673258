#include "report.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

namespace croft::bench {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string number(double value) {
  // JSON has no infinity, and a figure that is none was not measured.
  if (!std::isfinite(value)) std::abort();
  return fmt::format("{}", value);
}

std::string json_of(const Figure& figure, const std::string& unit) {
  return fmt::format(R"({{"name":{},"value":{},"unit":{}}})", quoted(figure.name), number(figure.value),
                     quoted(figure.unit.empty() ? unit : figure.unit));
}

bool is_met(const Row& row, const Budget& budget) {
  const double value = budget.of == Budget::Of::ratio ? row.ratio.value().value : row.value;
  return budget.is == Budget::Is::at_most ? value <= budget.limit : value >= budget.limit;
}

std::string json_of(const Row& row) {
  std::string text = fmt::format(R"({{"id":{},"what":{},"value":{},"unit":{})", quoted(row.id), quoted(row.what),
                                 number(row.value), quoted(row.unit));
  if (row.peer) text += fmt::format(R"(,"peer":{})", json_of(*row.peer, row.unit));
  if (row.limit) text += fmt::format(R"(,"limit":{})", json_of(*row.limit, row.unit));
  if (row.ratio) {
    text += fmt::format(R"(,"ratio":{},"ratio_of":{})", number(row.ratio->value), quoted(row.ratio->of));
  }
  if (row.budget) {
    text += fmt::format(R"(,"budget":{{"of":"{}","is":"{}","limit":{}}})",
                        row.budget->of == Budget::Of::ratio ? "ratio" : "value",
                        row.budget->is == Budget::Is::at_most ? "at most" : "at least", number(row.budget->limit));
    if (row.not_judged.empty()) {
      text += fmt::format(R"(,"met":{})", is_met(row, *row.budget));
    } else {
      text += fmt::format(R"(,"not_judged":{})", quoted(row.not_judged));
    }
  }
  if (!row.note.empty()) text += fmt::format(R"(,"note":{})", quoted(row.note));
  return text + "}";
}

void append(const std::string& line) {
  const char* const path = std::getenv("CROFT_BENCH_ROWS");
  if (path == nullptr || *path == '\0') return;
  std::FILE* const file = std::fopen(path, "ae");
  if (file != nullptr && std::fprintf(file, "%s\n", line.c_str()) > 0 && std::fclose(file) == 0) return;
  std::perror(path);
  std::exit(1);
}

}  // namespace

Budget at_most(double value) { return {Budget::Of::value, Budget::Is::at_most, value}; }
Budget at_least(double value) { return {Budget::Of::value, Budget::Is::at_least, value}; }
Budget ratio_at_most(double value) { return {Budget::Of::ratio, Budget::Is::at_most, value}; }
Budget ratio_at_least(double value) { return {Budget::Of::ratio, Budget::Is::at_least, value}; }

Ratio ratio_to(const Row& row, const Figure& figure) { return {row.value / figure.value, figure.name}; }

void record(const Row& row) { append(json_of(row)); }

void report(const std::string& line, const Row& row) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
  record(row);
}

void not_measured(const std::string& id, const std::string& what, const std::string& reason) {
  fmt::print("{:<58} not measured: {}\n", what, reason);
  std::fflush(stdout);
  append(fmt::format(R"({{"id":{},"what":{},"not_measured":{}}})", quoted(id), quoted(what), quoted(reason)));
}

}  // namespace croft::bench
