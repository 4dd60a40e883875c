"""The reference of the command line, from the help of each command."""

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# Programs for other kinds of samples, which have commands of their own.
KINDS = {"fields": "Fields", "cubes": "Image cubes", "sequences": "Sequences"}
_HEADING = re.compile(r"^[A-Z][^:]*:$")


@dataclass
class Argument:
    """A flag or an argument, and the paragraphs of its help."""

    name: str
    text: list[str] = field(default_factory=list)


@dataclass
class Help:
    """The help of a command, in its parts."""

    about: list[str] = field(default_factory=list)
    usage: list[str] = field(default_factory=list)
    groups: dict[str, list[Argument]] = field(default_factory=dict)
    after: list[str] = field(default_factory=list)


def parse(text: str) -> Help:
    """Reads the help that clap prints.

    >>> found = parse("Reads.\\n\\nUsage: x [A]\\n\\nOptions:\\n  -f, --flag <F>\\n          One\\n          two")
    >>> found.usage, found.groups["Options"][0].name, found.groups["Options"][0].text
    (['x [A]'], '-f, --flag <F>', ['One', 'two'])
    """
    found = Help()
    into, group = found.about, None
    for line in text.splitlines():
        if line.startswith("Usage:"):
            into, group = found.usage, None
            into.append(line.removeprefix("Usage:").strip())
        elif _HEADING.match(line):
            group = found.groups.setdefault(line[:-1], [])
        elif group is not None and re.match(r" {2,6}\S", line):
            name, *said = re.split(r"  +", line.strip(), maxsplit=1)
            group.append(Argument(name, said))
            into = group[-1].text
        elif group is not None and line and not line.startswith(" "):
            # What comes after the flags.
            group, into = None, found.after
            into.append(line)
        else:
            into.append(line.strip() if group is not None else line)
    found.usage = [line for line in found.usage if line.strip()]
    return found


def escape(text: str) -> str:
    """Plain text as Markdown: what is between backquotes stays, and flags are code."""
    pieces = re.split(r"(`[^`]*`)", text)
    flagged = [
        one if one.startswith("`") else re.sub(r"(?<![\w`-])(--[a-z][\w-]*)", r"`\1`", one) for one in pieces
    ]
    pieces = re.split(r"(`[^`]*`)", "".join(flagged))
    return "".join(
        one if one.startswith("`") and one.endswith("`") and len(one) > 1
        else re.sub(r"([\\*_<>\[\]{}#|$^~])", r"\\\1", one)
        for one in pieces
    )


def paragraphs(lines: list[str]) -> list[str]:
    """Lines as Markdown, by paragraph: lists are lists, and what is indented is code."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        rows = block.splitlines()
        if rows and all(row.startswith("  ") for row in rows):
            found.append("```text\n" + "\n".join(row[2:] for row in rows) + "\n```")
        elif any(row.lstrip().startswith("- ") for row in rows):
            items = re.split(r"^ *- ", block, flags=re.M)
            lead, items = items[0].strip(), items[1:]
            if lead:
                found.append(escape(" ".join(lead.split())))
            found.append("\n".join(f"- {escape(' '.join(item.split()))}" for item in items))
        elif block.strip():
            found.append(escape(" ".join(block.split())))
    return found


class Program:
    """The command `somafeed`, as the wheel has it."""

    def __init__(self, python: Path, package: Path) -> None:
        self._python, self._package = python, package

    def help(self, *command: str) -> Help:
        """The long help of a command.

        Raises:
            ValueError: The command failed.
        """
        environment = {**os.environ, "PYTHONPATH": str(self._package)}
        ran = subprocess.run(
            [self._python, "-m", "somafeed", *command, "--help"],
            env=environment, capture_output=True, text=True,
        )
        if ran.returncode != 0:
            raise ValueError(f"somafeed {' '.join(command)} --help failed: {ran.stderr}")
        return parse(ran.stdout)


def _page(called: str, found: Help, level: int = 1) -> str:
    program = called.replace(" ", "-")
    lines = [f"{'#' * level} {called}", "", f"```{{program}} {program}\n```", ""]
    for block in paragraphs(found.about):
        lines += [block, ""]
    if found.usage:
        lines += ["```text", *found.usage, "```", ""]
    for name, group in found.groups.items():
        group = [one for one in group if not one.name.startswith("-h,")]
        if name == "Commands" or not group:
            continue
        lines += [f"{'#' * (level + 1)} {name}" if level == 1 else f"**{name}**", ""]
        if name == "Examples":
            lines += ["```sh", *_examples(group), "```", ""]
        elif group[0].name.startswith(("-", "<", "[")):
            for argument in group:
                lines += [f"````{{option}} {argument.name}", *_described(argument), "````", ""]
        else:
            lines += [f"- `{one.name}`: {escape(' '.join(one.text).strip())}" for one in group] + [""]
    for block in paragraphs(found.after):
        lines += [block, ""]
    return "\n".join(lines)


def _described(argument: Argument) -> list[str]:
    """The help of an argument, its default at the end of its text."""
    blocks = paragraphs(argument.text)
    if len(blocks) > 1 and blocks[-1].startswith(r"\[default") and not blocks[-2].startswith("- "):
        blocks[-2:] = [f"{blocks[-2]} {blocks[-1]}"]
    return [line for block in blocks for line in (block, "")]


def _examples(group: list[Argument]) -> list[str]:
    """Commands, each in one line: the help wraps long ones."""
    found: list[str] = []
    for one in group:
        line = "  ".join([one.name, *one.text]).strip()
        if line.startswith(("somafeed ", "srun ", "mpirun ")) or not found:
            found.append(line)
        else:
            found[-1] += f" {line}"
    return found


def pages(program: Program) -> tuple[str, dict[str, str]]:
    """The first page, and a page for each command of cells and for each other kind of samples."""
    main = program.help()
    first = [
        "# Commands", "",
        "The wheel's command `somafeed`, or `python -m somafeed`. In a clone, `cargo xtask` has the same",
        "commands with the same arguments. Only there are consumers that train (`--consumer linear`, and `cuda`",
        "of cubes) and comparisons with other loaders (`peers`), which need more than the wheel has.", "",
        "| command | does |", "|---|---|",
    ]
    found: dict[str, str] = {}
    for argument in main.groups["Commands"]:
        if argument.name == "help":
            continue
        about = escape(" ".join(" ".join(argument.text).split()))
        first.append(f"| [`{argument.name}`](commands/{argument.name}.md) | {about} |")
        found[argument.name] = _page(f"somafeed {argument.name}", program.help(argument.name))
    for kind, title in KINDS.items():
        of_kind = program.help(kind)
        names = [one.name for one in of_kind.groups["Commands"] if one.name != "help"]
        first.append(f"| [`{kind}`](commands/{kind}.md) | {title}: {', '.join(f'`{name}`' for name in names)} |")
        text = [_page(f"somafeed {kind}", of_kind)]
        text += [_page(f"somafeed {kind} {name}", program.help(kind, name), 2) for name in names]
        found[kind] = "\n".join(text)
    return "\n".join(first) + "\n", found
