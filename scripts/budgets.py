"""Lines of each room, and sentences for people that are hard to read, beside the table of what a room may have (budgets.txt).

    measured(root)         {room: Counts}
    over_budget(root)      (room, what is over) for each figure above the table, and for each room that the table lacks
"""

import pathlib
import re

TABLE = "scripts/budgets.txt"
COLUMNS = ("product", "tests", "backwards", "long")
# Rooms whose folders are counted by themselves.
SPLIT = {"store"}
PROGRAM = re.compile(r"cli/|[^/]+/(commands|daemon)/")
OTHERS = {"e2e": ("*.py", "*.sh"), "docs": ("*.md",)}
WORDS_MAX = 30

COMMENT = re.compile(r"^\s*//[/!]?<?\s?(.*)$|\s//[/!]?<?\s(.*)$")
SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z`\"(])")
BACKWARDS = re.compile(r"(Who|Whoever|Whom|Whose|What|Of)\b")
HELP = re.compile(r"(?:add_option|add_flag|add_subcommand|footer)\((.*?)\)\s*(?:;|->|\n)", re.S)
LITERALS = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\s*"((?:[^"\\]|\\.)*)")*')


def comments(text):
    """The comments of a file, lines that follow each other joined; one behind code is one by itself."""
    block = []
    for line in text.splitlines():
        found = COMMENT.search(line)
        if found and found.group(1) is not None:
            block.append(found.group(1))
            continue
        if block:
            yield " ".join(block)
        block = []
        if found:
            yield found.group(2)
    if block:
        yield " ".join(block)


def help_lines(text):
    for call in HELP.findall(text):
        literals = ["".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found.group(0))) for found in LITERALS.finditer(call)]
        if literals and " " in literals[-1]:
            yield literals[-1]


def hard_sentences(texts):
    """How many begin backwards (the subject is not the thing), and how many are too long."""
    backwards = too_long = 0
    for text in texts:
        for sentence in SENTENCE_END.split(text.strip()):
            backwards += BACKWARDS.match(sentence) is not None
            too_long += len(sentence.split()) > WORDS_MAX
    return backwards, too_long


def room_of(path):
    folder = path.split("/")[0]
    return "src/" + ("/".join(path.split("/")[:2]) if folder in SPLIT and path.count("/") > 1 else folder)


def measured(root, test_files):
    """{room: {column: figure}}; `test_files`: a pattern of paths below src/ that are tests."""
    root, rooms = pathlib.Path(root), {}

    def add(room, **figures):
        counts = rooms.setdefault(room, dict.fromkeys(COLUMNS, 0))
        for name, figure in figures.items():
            counts[name] += figure

    for file in sorted((root / "src").rglob("*")):
        if file.suffix not in (".h", ".cc"):
            continue
        path, text = file.relative_to(root / "src").as_posix(), file.read_text(encoding="utf-8")
        room, lines = room_of(path), text.count("\n")
        if test_files.search(path):
            add(room, tests=lines)
            continue
        backwards, too_long = hard_sentences([*comments(text), *(help_lines(text) if PROGRAM.match(path) else [])])
        add(room, product=lines, backwards=backwards, long=too_long)
    for folder, patterns in OTHERS.items():
        for pattern in patterns:
            for file in (root / folder).rglob(pattern):
                add(folder, product=file.read_text(encoding="utf-8").count("\n"))
    return rooms


def table(root):
    """{room: {column: at most}}; empty where there is no table."""
    path, rooms = pathlib.Path(root) / TABLE, {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        words = line.partition("#")[0].split()
        if words:
            rooms[words[0]] = dict(zip(COLUMNS, map(int, words[1:])))
    return rooms


def over_budget(root, test_files):
    budgets = table(root)
    for room, counts in measured(root, test_files).items() if budgets else ():
        if room not in budgets:
            yield room, f"is a new room; give it a line in {TABLE}"
            continue
        for name, figure in counts.items():
            if figure > budgets[room][name]:
                yield room, f"{figure} {NAMES[name]}, at most {budgets[room][name]} by {TABLE}"


NAMES = {"product": "lines", "tests": "lines of unit tests", "backwards": "sentences that begin with Who, What or Of",
         "long": f"sentences of more than {WORDS_MAX} words"}


def as_table(rooms):
    width = max(map(len, rooms))
    total = {name: sum(counts[name] for room, counts in rooms.items() if room.startswith("src/")) for name in COLUMNS}
    lines = [[room, *(str(counts[name]) for name in COLUMNS)] for room, counts in rooms.items()]
    lines.append(["# src", *(str(total[name]) for name in COLUMNS)])
    return "".join(f"{line[0]:<{width}}" + "".join(f"{figure:>10}" for figure in line[1:]) + "\n"
                   for line in [["# room", *COLUMNS], *lines])
