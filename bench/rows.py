"""What bench/report.h is to the programs in C++: rows for the table of bench/run, in the same form; and how a row reads."""

import json
import os


def figure(name, value, unit):
    """Beside the measured one, of the same run."""
    return {"name": name, "value": value, "unit": unit}


def budget(of, is_, limit):
    """`of`: "value" or "ratio"; `is_`: "at most" or "at least"."""
    return {"of": of, "is": is_, "limit": limit}


def _append(row):
    path = os.environ.get("CROFT_BENCH_ROWS")
    if not path:
        return
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def record(id, what, value, unit, **more):
    """`more`: peer, limit, ratio with ratio_of, budget, note. Whether the budget is met is computed here."""
    row = {"id": id, "what": what, "value": value, "unit": unit, **{k: v for k, v in more.items() if v is not None}}
    if "budget" in row:
        judged = row[row["budget"]["of"]]
        limit = row["budget"]["limit"]
        row["met"] = judged <= limit if row["budget"]["is"] == "at most" else judged >= limit
    _append(row)


def not_measured(id, what, reason):
    print(f"{what:<58} not measured: {reason}", flush=True)
    _append({"id": id, "what": what, "not_measured": reason})


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:,.3g}"


def measured(figure):
    unit = figure["unit"]
    return number(figure["value"]) + (unit if unit.startswith("/") else " " + unit)


def beside(figure):
    return f"{figure['name']}: {measured(figure)}" if figure else ""


COLUMNS = ("what", "Croft", "peer", "limit", "ratio", "budget", "met")


def cells(row):
    if "not_measured" in row:
        return (row["what"], "not measured: " + row["not_measured"], "", "", "", "", "")
    budget, ratio, met = row.get("budget"), "", ""
    if "ratio" in row:
        # What has a column of its own is not named again.
        names = {row[column]["name"]: f"the {column}" for column in ("peer", "limit") if column in row}
        ratio = f"{row['ratio']:.2f} x {names.get(row['ratio_of'], row['ratio_of'])}"
    text = ""
    if budget:
        text = f"{budget['is']} {number(budget['limit'])} " + ("x" if budget["of"] == "ratio" else row["unit"])
        met = "not judged: " + row["not_judged"] if "not_judged" in row else "yes" if row["met"] else "no"
    return (row["what"], measured(row), beside(row.get("peer")), beside(row.get("limit")), ratio, text, met)


def head_lines(top):
    return [f"{top['taken']}, Croft's own figures beside what others take in the same run",
            f"machine: {top['cpu']}, {top['cores']} cores, Linux {top['kernel']}; load average {top['load'][0]} before, "
            f"{top['load'][1]} after; the disk's sync {top['sync_ms'][0]} ms before, {top['sync_ms'][1]} ms after",
            "versions: " + "; ".join(f"{name} {version}" for name, version in top["versions"].items())]
