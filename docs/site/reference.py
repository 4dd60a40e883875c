"""The reference of the Python package, from its sources and stubs. Nothing is imported."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import griffe

PACKAGE = "somafeed"


@dataclass(frozen=True)
class Chapter:
    """A page of the reference, and what it describes."""

    title: str
    about: str
    names: tuple[str, ...]


# Names without a module are those of the package; `module.Name` is for what it does not export.
CHAPTERS = {
    "cells": Chapter("Cells", "Batches of cells, and what selects them.", (
        "ExperimentDataset", "Modality", "Neighbours", "RankTokens", "BinTokens", "LabelEncoder", "BatchKeyEncoder",
        "QueryIDs", "XLocator", "generate_example", "Form", "ObsForm", "DType",
    )),
    "fields": Chapter("Fields", "Samples of Zarr arrays.", (
        "FieldDataset", "Variable", "Stack", "Forcing", "Patches", "latitude_weights",
    )),
    "images": Chapter("Image cubes", "Image cubes with their masks.", (
        "ImageDataset", "Key", "Augmentation", "Affine",
    )),
    "sequences": Chapter("Sequences", "DNA, RNA and other sequences.", (
        "SequenceDataset", "Kmers", "Vocabulary", "Windows", "OneHot", "SequenceServers",
        "import_sequences", "Doc2Vec",
    )),
    "own-samples": Chapter("Your own samples", "Samples that Python code reads.", (
        "SourceDataset", "Source",
    )),
    "all-kinds": Chapter("Samples of all kinds", "What data sets of all kinds have.", (
        "samples.SampleDataset", "EngineSettings", "ExperimentIterator", "experiment_dataloader",
        "WithReplacement", "Weighted", "ClassBalanced", "Mixture", "Stratified", "AtMostPerClass",
        "GroupBatches", "Hierarchical", "SamplingMethod", "SomafeedError",
    )),
    "frameworks": Chapter("Frameworks", "Modules that import a framework when they are first used.", (
        "lightning.DataModule", "lightning.PredictionWriter", "scvi.DataModule",
    )),
    "native": Chapter(
        "The native module",
        "What the data sets are made of. These need numpy alone, and batches of the loader are arrays over "
        "native memory.",
        ("Experiment", "Dataset", "Loader", "Epoch", "Batch", "Budget", "ArrowTable", "Tokenizer", "Sampling",
         "Fields", "FieldBatch", "Images", "ImageBatch", "OwnSamples", "Samples", "SampleBatch",
         "SampleLoader", "split_by_fraction", "split_by_group", "split_by_label", "libtiledb", "version"),
    ),
}
# Where a type that several modules name is described.
_ALIASES = ("batches", "obs_forms", "fields", "images", "sequences", "kmers", "tokens", "own_source",
            "times", "variables", "samplings", "loaders", "device", "labels", "stores", "lightning")


class Reference:
    """Writes the pages of the reference."""

    def __init__(self, folder: Path) -> None:
        """`folder` has the package.

        Raises:
            ValueError: A public name is in no chapter, or in two.
        """
        self._package = griffe.load(PACKAGE, search_paths=[folder], allow_inspection=False,
                                    resolve_aliases=True, resolve_external=False)
        public = [str(one).strip("'\"") for one in self._package.exports or []]
        chosen = [name for chapter in CHAPTERS.values() for name in chapter.names if "." not in name]
        if sorted(public) != sorted(chosen):
            raise ValueError(f"names of {PACKAGE} and of the chapters differ: {set(public) ^ set(chosen)}")
        self._objects = {
            name: self._found(name) for chapter in CHAPTERS.values() for name in chapter.names
        }
        self._aliases = {name: one for name, one in self._types().items() if name not in self._objects}
        # In texts, names of frameworks' modules are their own.
        short = [name for name in self._objects if name.count(".") == 0 or name.startswith("samples.")]
        self._links = {name.removeprefix("samples."): self._place(name) for name in short}
        self._links |= {name: one.path for name, one in self._aliases.items() if name not in self._links}

    def _found(self, name: str) -> Any:
        one = self._package
        for part in name.split("."):
            one = one.members[part]
        return one.final_target if one.is_alias else one

    def _place(self, name: str) -> str:
        return f"{PACKAGE}.{name.removeprefix('samples.')}"

    def _types(self) -> dict[str, Any]:
        """Types that arguments have, by name."""
        found: dict[str, Any] = {}
        for module in _ALIASES:
            for name, one in self._package.members[module].members.items():
                is_type = not one.is_alias and one.is_attribute and "TypeAlias" in str(one.annotation)
                if is_type and one.docstring and not name.startswith("_"):
                    found.setdefault(name, one)
        return found

    def pages(self) -> tuple[str, dict[str, str]]:
        """The first page, and the others by name."""
        first = ["# Python reference", "", "Made from the sources and stubs of the package `somafeed`. "
                 "[Python](../how-to/python.md) explains how the parts go together, and "
                 "[settings](settings.md) has all arguments in one place.", ""]
        pages: dict[str, str] = {}
        for key, chapter in CHAPTERS.items():
            first += [f"**[{chapter.title}](python-reference/{key}.md)**: {chapter.about}", ""]
            text = [f"# {chapter.title}", "", chapter.about, ""]
            for name in chapter.names:
                one = self._objects[name]
                called = name.removeprefix("samples.")
                first += [f"- {{py:obj}}`{called} <{self._place(name)}>`: {_first_sentence(one)}"]
                text += self._described(name, one)
            first += [""]
            pages[key] = "\n".join(text)
        first += ["**[Types of arguments](python-reference/types.md)**", ""]
        text = ["# Types of arguments", "", "Names that signatures use, for type checkers.", ""]
        for name, one in sorted(self._aliases.items()):
            text += self._data(name, one.module.path, one)
        pages["types"] = "\n".join(text)
        return "\n".join(first), pages

    # Objects

    def _described(self, name: str, one: Any) -> list[str]:
        module, _, short = self._place(name).rpartition(".")
        if one.is_class:
            return self._class(short, module, one)
        if one.is_function:
            return self._function("py:function", short, one, [f":module: {module}"], 4)
        return self._data(short, module, one)

    def _data(self, name: str, module: str, one: Any) -> list[str]:
        """A constant, or a type with its value."""
        value = re.sub(r"\s+", " ", str(one.value)).strip("'\"")
        is_type = "TypeAlias" in str(one.annotation)
        return [f"::::{{py:data}} {name}", f":module: {module}",
                *([f":value: {value}"] if is_type else []), "",
                *self._text(one.docstring.value if one.docstring else ""), "::::", ""]

    def _class(self, name: str, module: str, one: Any) -> list[str]:
        # Nobody makes one of the class that all kinds share.
        init = None if name == "SampleDataset" else one.members.get("__init__")
        is_typed_dict = "TypedDict" in [str(base) for base in one.bases]
        is_dataclass = any("dataclass" in str(of.value) for of in one.decorators)
        if is_dataclass:
            fields = [of for of in one.members.values() if _is_field(of)]
            signature = ", ".join(
                of.name if of.value is None else f"{of.name}={self._default(of.value, one.module)}"
                for of in fields if "init=False" not in str(of.value)
            )
        else:
            signature = self._parameters(init, one.module) if init is not None else ""
        head = f"{name}({signature})" if signature or is_dataclass or init is not None else name
        lines = [f":::::::{{py:class}} {head}", f":module: {module}", ""]
        lines += self._text(one.docstring.value if one.docstring else "")
        bases = [str(base).split("[")[0] for base in one.bases]
        if "OpenedDataset" in bases or "Parts" in bases:
            lines += ["Also has the methods and properties of all data sets: "
                      f"{self._link('SampleDataset')}. Keyword arguments of the engine: "
                      f"{self._link('EngineSettings')}.", ""]
        if init is not None and init.docstring and not is_dataclass:
            lines += self._sections(init)
        has_fields = is_dataclass or is_typed_dict
        for member in self._members(one, has_fields):
            lines += self._member(member, has_fields)
        return [*lines, ":::::::", ""]

    def _members(self, one: Any, has_fields: bool) -> list[Any]:
        """Public members, and those of private classes that it inherits from."""
        own = dict(one.members)
        for base in one.mro() if one.bases else []:
            if base.name in ("Selected", "Parts", "Described"):
                own = {**base.members, **own}
        found = []
        for name, member in own.items():
            if name.startswith("_") or member.is_alias and not member.final_target.is_function:
                continue
            member = member.final_target if member.is_alias else member
            is_property = "property" in member.labels
            if member.docstring or member.is_function or is_property or has_fields and _is_field(member):
                found.append(member)
        return found

    def _member(self, member: Any, is_field: bool) -> list[str]:
        if member.is_function:
            decorators = [str(of.value) for of in member.decorators]
            options = [f":{name}:" for name in ("classmethod", "staticmethod") if name in decorators]
            return self._function("py:method", member.name, member, options, 5)
        kind = "py:property" if "property" in member.labels else "py:attribute"
        lines = [f":::::{{{kind}}} {member.name}"]
        if member.annotation is not None:
            lines += [f":type: {_annotation(member.annotation)}"]
        if is_field and member.value is not None:
            default = self._default(member.value, member.module)
            lines += [f":value: {default}"] if default else []
        text = member.docstring.value if member.docstring else ""
        return [*lines, "", *self._text(text), ":::::", ""]

    def _function(self, kind: str, name: str, one: Any, options: list[str], colons: int) -> list[str]:
        returns = f" -> {_annotation(one.returns)}" if one.returns is not None else ""
        signature = self._parameters(one, one.module)
        fence = ":" * colons
        return [f"{fence}{{{kind}}} {name}({signature}){returns}", *options, "",
                *self._sections(one), fence, ""]

    def _parameters(self, function: Any, module: Any) -> str:
        """Names and defaults: types stand beside the texts."""
        found: list[str] = []
        kinds = griffe.ParameterKind
        starred = False
        for one in function.parameters:
            if one.name in ("self", "cls") and not found:
                continue
            name = one.name.lstrip("*")
            if one.kind is kinds.var_positional:
                found, starred = [*found, f"*{name}"], True
                continue
            if one.kind is kinds.keyword_only and not starred:
                found, starred = [*found, "*"], True
            if one.kind is kinds.var_keyword:
                found.append(f"**{name}")
            elif one.default is None:
                found.append(name)
            else:
                found.append(f"{name}={self._default(one.default, module)}")
        return ", ".join(found)

    def _default(self, value: Any, module: Any) -> str:
        """The text of a default, with the values of constants in place of their names."""
        text = str(value)
        if factory := re.search(r"default_factory=(\w+)", text):
            return {"dict": "{}", "list": "[]"}.get(factory[1], "...")
        if text.startswith("field("):
            found = re.search(r"default=([^,)]+\)?)", text)
            return found[1] if found else ""
        for _ in range(3):
            text = re.sub(r"\b[A-Z][A-Z_]{2,}\b", lambda found: self._constant(found[0], module), text)
        return text

    def _constant(self, name: str, module: Any) -> str:
        one = module.members.get(name)
        if one is not None and one.is_alias:
            one = one.final_target
        return name if one is None or one.value is None else str(one.value)

    # Texts

    def _sections(self, function: Any) -> list[str]:
        """The docstring of a function: its text, arguments and errors."""
        types = {one.name.lstrip("*"): one.annotation for one in function.parameters}
        fields, lines = [], []
        if function.docstring is None:
            return []
        for section in function.docstring.parse("google", warnings=False):
            if section.kind is griffe.DocstringSectionKind.parameters:
                for one in section.value:
                    name = one.name.lstrip("*")
                    fields.append(f":param {name}: {self._inline(one.description)}")
                    if types.get(name) is not None:
                        fields.append(f":type {name}: {_annotation(types[name])}")
            elif section.kind is griffe.DocstringSectionKind.raises:
                for one in section.value:
                    fields.append(f":raises {one.annotation}: {self._inline(one.description)}")
            elif section.kind is griffe.DocstringSectionKind.returns:
                for one in section.value:
                    fields.append(f":returns: {self._inline(one.description)}")
            elif section.kind is griffe.DocstringSectionKind.text:
                lines += self._text(section.value)
            elif section.kind is griffe.DocstringSectionKind.examples:
                lines += self._text("\n\n".join(text for _, text in section.value))
            else:
                raise ValueError(f"{function.path}: a section of kind {section.kind}")
        return [*lines, *fields, ""]

    def _text(self, text: str) -> list[str]:
        """A docstring as Markdown: examples are blocks of code."""
        lines: list[str] = []
        is_example = False
        for line in text.splitlines():
            if line.startswith(">>>") and not is_example:
                lines += ["", "```pycon"]
                is_example = True
            elif not line.strip() and is_example:
                lines += ["```"]
                is_example = False
            if is_example:
                lines.append(line.replace("  # doctest: +SKIP", ""))
            else:
                lines.append(self._linked(line))
        return [*lines, *(["```"] if is_example else []), ""]

    def _inline(self, text: str) -> str:
        return self._linked(" ".join(text.split()))

    def _linked(self, text: str) -> str:
        """Names in backquotes are links if they are described."""
        return re.sub(r"`(\w+)`", lambda found: self._link(found[1]), text)

    def _link(self, name: str) -> str:
        place = self._links.get(name)
        return f"`{name}`" if place is None else f"{{py:obj}}`{name} <{place}>`"


def _is_field(one: Any) -> bool:
    return one.is_attribute and one.annotation is not None and not one.name.startswith("_")


def _annotation(annotation: Any) -> str:
    text = re.sub(r"\s+", " ", str(annotation))
    return re.sub(r"\bnative\.", "", text).strip("'\"")


def _first_sentence(one: Any) -> str:
    text = one.docstring.value if one.docstring else ""
    text = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.])\s", text)[0]
