"""The pages of the site: which they are, where they stand, and their links.

The pages are plain Markdown in the repository. `docs/index.md` lists them by part, and its lists are
the site's navigation. A page's links lead to other pages of the site, or else to the repository.
"""

import json
import os
import re
import shutil
from base64 import b64decode
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

INDEX = "docs/index.md"
_PART = re.compile(r"^## (.+)$")
_ENTRY = re.compile(r"^(  )?- \[(.+?)\]\((.+?)\)")
_FENCE = re.compile(r"^ *(`{3,}|~{3,})(.*)$")
# A span of code, or a link or picture, whose text may have code.
_SPAN = re.compile(
    r"(?P<code>(?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<bang>!?)\[(?P<text>(?:`[^`]*`|\[[^\[\]]*\]|[^\[\]`])*)\]\((?P<target>[^()\s]+)\)",
    re.DOTALL,
)


@dataclass
class Page:
    """A file of the repository that is a page of the site."""

    title: str
    path: str
    """Its path in the repository."""
    name: str
    """Its place in the site, without a suffix."""
    children: list["Page"] = field(default_factory=list)


@dataclass
class Part:
    """A part of the site, with its pages in order."""

    title: str
    pages: list[Page] = field(default_factory=list)

    @property
    def folder(self) -> str:
        return self.title.lower()


def read_parts(index: str) -> list[Part]:
    """The parts that the lists of the index describe.

    Raises:
        ValueError: A line of a list is not understood.
    """
    parts: list[Part] = []
    for line in index.splitlines():
        if found := _PART.match(line):
            parts.append(Part(found[1]))
        elif parts and line.lstrip().startswith("- "):
            found = _ENTRY.match(line)
            if found is None:
                raise ValueError(f"{INDEX}: no link to a page: {line}")
            path = os.path.normpath(f"docs/{found[3]}")
            page = Page(found[2], path, f"{parts[-1].folder}/{_place(path)}")
            siblings = parts[-1].pages[-1].children if found[1] else parts[-1].pages
            siblings.append(page)
    return parts


def _place(path: str) -> str:
    """`docs/notebooks/scvi.ipynb` is `notebooks/scvi`, `benches/peers/README.md` is `peers`."""
    pure = PurePosixPath(path).with_suffix("")
    if pure.name == "README":
        return pure.parent.name
    return str(pure.relative_to("docs") if pure.is_relative_to("docs") else pure).lower()


class Site:
    """Writes the pages as Sphinx reads them."""

    def __init__(self, root: Path, files: list[str], source: Path, repository: str) -> None:
        """`files` are those of the repository in `root`. `repository` is its address, or empty as long
        as there is none: links to it are then texts that name the file.

        Raises:
            ValueError: A page of docs is not in the index, or there is no such file.
        """
        self._root, self._files, self._source = root, set(files), source
        self._repository = repository.rstrip("/")
        self.parts = read_parts((root / INDEX).read_text())
        self.waiting = 0
        """Links to files of the repository while it has no address."""
        listed = [page for part in self.parts for one in part.pages for page in [one, *one.children]]
        self._names = {INDEX: "index"} | {page.path: page.name for page in listed}
        for path in files:
            is_page = path.startswith("docs/") and path.endswith((".md", ".ipynb"))
            if is_page and path not in self._names:
                raise ValueError(f"{path} is not in the lists of {INDEX}")
            if found := re.fullmatch(r"results/([^/]+)/README\.md", path):
                self._names[path] = f"explanation/results/{found[1]}"
        if missing := set(self._names) - self._files:
            raise ValueError(f"{INDEX} lists files that are not there: {', '.join(missing)}")

    def write(self) -> None:
        """Writes all pages."""
        captions = [_toctree([page.name for page in part.pages], part) for part in self.parts]
        self._write("index", self._converted(INDEX) + "\n" + "\n".join(captions))
        for part in self.parts:
            for page in part.pages:
                # Those without a path were made, and are written.
                for one in [page, *page.children] if page.path else []:
                    text = self._converted(one.path)
                    if one.children:
                        text += "\n" + _toctree([child.name for child in one.children])
                    self._write(one.name, text)
        for path, name in self._names.items():
            if name.startswith("explanation/results/"):
                self._write(name, "---\norphan: true\n---\n\n" + self._converted(path))

    def add(self, part: str, title: str, name: str, text: str, children: list[str]) -> None:
        """Writes a page that is made and has others below it, and lists it first in its part."""
        self._write(name, text + "\n" + _toctree(children))
        of = next(one for one in self.parts if one.title == part)
        of.pages.insert(0, Page(title, "", name))

    def add_below(self, name: str, text: str) -> None:
        """Writes a page that is made and that another one lists."""
        self._write(name, text)

    def _write(self, name: str, text: str) -> None:
        path = self._source / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _converted(self, path: str) -> str:
        file = self._root / path
        if path.endswith(".ipynb"):
            return self._notebook(path, json.loads(file.read_text()))
        return self.with_links(path, file.read_text())

    def _notebook(self, path: str, notebook: dict) -> str:
        """A notebook with its saved outputs; nothing is run."""
        name = self._names[path]
        shutil.copy(self._root / path, self._made(f"{name}.ipynb"))
        parts = []
        for at, cell in enumerate(notebook["cells"]):
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts.append(self.with_links(path, text))
                if at == 0:
                    parts.append(f"[Download this notebook]({Path(path).name})")
                continue
            parts.append(f"```python\n{text}\n```")
            for number, output in enumerate(cell["outputs"]):
                picture = output.get("data", {}).get("image/png")
                said = output.get("text") if output.get("name") != "stderr" else None
                if picture:
                    image = f"{name}-{at}-{number}.png"
                    self._made(image).write_bytes(b64decode(picture))
                    parts.append(f"![the picture that these lines draw](/{image})")
                elif said := said or output.get("data", {}).get("text/plain"):
                    shown = "".join(said).rstrip()
                    parts.append(f"```{{code-block}} text\n:class: output\n\n{shown}\n```")
        return "\n\n".join(parts) + "\n"

    def _made(self, name: str) -> Path:
        path = self._source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    # Links

    def with_links(self, path: str, text: str) -> str:
        """The text of a page whose links fit the site, and whose blocks of code name their language
        alone."""
        pieces, prose, fence = [], [], ""
        for line in text.splitlines(keepends=True):
            found = _FENCE.match(line)
            if found and not fence:
                pieces.append(self._linked(path, "".join(prose)))
                prose, fence = [], found[1]
                pieces.append(_without_options(line))
            elif fence:
                pieces.append(line)
                if found and found[1].startswith(fence) and not found[2].strip():
                    fence = ""
            else:
                prose.append(line)
        return "".join([*pieces, self._linked(path, "".join(prose))])

    def _linked(self, path: str, prose: str) -> str:
        def place(found: re.Match) -> str:
            if found["code"] or re.match(r"[a-z]+:|#", found["target"]):
                return found[0]
            return self._link(path, found["bang"], found["text"], found["target"])

        return _SPAN.sub(place, prose)

    def _link(self, path: str, bang: str, text: str, target: str) -> str:
        file, _, heading = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(path), file))
        if not (self._root / file).exists():
            raise ValueError(f"{path}: {target} is not there")
        if bang:
            image = self._made(f"pictures/{file}")
            shutil.copy(self._root / file, image)
            return f"![{text}](/pictures/{file})"
        anchor = heading and f"#{heading}"
        if file in self._names:
            to = os.path.relpath(self._names[file], os.path.dirname(self._names[path]))
            return f"[{text}]({to}.md{anchor})"
        if self._repository:
            kind = "tree" if (self._root / file).is_dir() else "blob"
            return f"[{text}]({self._repository}/{kind}/main/{file}{anchor})"
        self.waiting += 1
        return f'<span class="in-repository" title="{file} in the repository">{text}</span>'


def _without_options(fence: str) -> str:
    """`rust,no_run` is `rust`, `sh no-run` is `sh`: the rest is for tests."""
    return re.sub(r"^( *(?:`{3,}|~{3,})\w*)[ ,].*$", r"\1", fence)


def _toctree(names: list[str], part: Part | None = None) -> str:
    titles = {page.name: page.title for page in part.pages} if part else {}
    lines = [f"{titles[name]} </{name}>" if name in titles else f"/{name}" for name in names]
    caption = f":caption: {part.title}\n" if part else ""
    return "```{toctree}\n:hidden:\n" + caption + "\n" + "\n".join(lines) + "\n```\n"
