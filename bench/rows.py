"""What bench/report.h is to the programs in C++: rows for the table of bench/run, in the same form."""

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
