# SPDX-License-Identifier: Apache-2.0
"""What mkdocs.yml adds to the pages of docs/: pages of the repository that they link to, the interfaces of
the package and of the C headers, and the glossary wherever one of its words stands.

A page lies in the site where it lies in the repository, but those of docs/ at the top, and README.md is the
first page.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import c_interface  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FIRST = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
LINK = re.compile(r"(\]\()([^)\s]+)(\))|(^\[[^\]]+\]:\s+)(\S+)()$", re.M)
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.M | re.S)
LANGUAGES = {".py": "python", ".yaml": "yaml", ".cc": "cpp", ".h": "cpp", ".sh": "sh"}

origins = {}  # of each page of the site: its file in the repository


def place(path):
    """In the site, of a file or folder of the repository."""
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return path[len("docs/") :]
    if (ROOT / path).is_dir():
        return f"{path}/index.md"
    return path if path.endswith((".md", ".png", ".svg")) else f"{path}.md"


def target(page, link):
    """(file or folder of the repository, #anchor) that a link names; None: not there, or elsewhere."""
    path, mark, anchor = link.partition("#")
    if not path or re.match(r"[a-z]+:", link):
        return None
    named = os.path.normpath(PurePosixPath(page).parent / path)
    return (named, mark + anchor) if (ROOT / named).exists() else None


def outside_code(change, text):
    return "".join(part if CODE.fullmatch(part) else change(part) for part in CODE.split(text))


def relinked(page, text):
    """The text of a page of the repository, with links to places of the site."""

    def one(found):
        before, link, after = (group for group in found.groups() if group is not None)
        named = target(page, link)
        if not named:
            return found[0]
        there = os.path.relpath(place(named[0]), PurePosixPath(place(page)).parent)
        return before + there + named[1] + after

    return outside_code(lambda part: LINK.sub(one, part), text)


def source(path):
    """The text of a page for anything in the repository."""
    file = ROOT / path
    if path.endswith(".md"):
        return file.read_text()
    names = [path]
    if file.is_dir():
        listed = subprocess.run(
            ["git", "ls-files", path], cwd=ROOT, check=True, capture_output=True, text=True
        )
        names = listed.stdout.splitlines()
    text = f"# {path}\n"
    for name in names:
        language = LANGUAGES.get(Path(name).suffix, "")
        text += f"\n## {name}\n\n````{language}\n{(ROOT / name).read_text()}\n````\n"
    return text


def links_of(page, text):
    for found in LINK.finditer(CODE.sub("", text)):
        named = target(page, found[2] or found[5])
        if named and not named[0].endswith((".png", ".svg")):
            yield named[0]


def python_names():
    """(name, its module) of all that the package shows, from its own lists: functions, classes, errors."""
    tree = ast.parse((ROOT / "python/tradewind/__init__.py").read_text())
    lists = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}
    names, modules = ast.literal_eval(lists["__all__"]), ast.literal_eval(lists["_NEEDS_TORCH"])
    names.sort(key=lambda name: (name.endswith(("Error", "Warning")), name[0].isupper()))
    return [(name, f"tradewind{modules.get(name, '.errors')}") for name in names if name != "data"]


def python_page():
    shown = [f"::: {module}.{name}" for name, module in python_names()]
    whole = "::: tradewind.data\n    options: {members: true, show_root_full_path: true}"
    return "# The package tradewind\n\n[The guide](../python.md) has the story.\n\n" + "\n\n".join(
        [*shown, whole]
    )


def glossary():
    """(term, meaning) of each row of docs/glossary.md."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", (ROOT / "docs/glossary.md").read_text(), re.M)
    return [(term, re.sub(r"[`*]|\]\([^)]*\)|\[", "", meaning)) for term, meaning in rows[1:]]


def on_files(files, config):
    origins.update({file.src_uri: f"docs/{file.src_uri}" for file in files if file.src_uri.endswith(".md")})
    waiting = [*FIRST]
    for page in list(origins.values()):
        waiting += links_of(page, (ROOT / page).read_text())
    while waiting:
        path = waiting.pop()
        if place(path) in origins:
            continue
        text = source(path)
        origins[place(path)] = path
        files.append(File.generated(config, place(path), content=text))
        if path.endswith(".md"):
            waiting += links_of(path, text)
    for name, text in (("api/python.md", python_page()), ("api/c.md", c_interface.page())):
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "site.css", abs_src_path=str(Path(__file__).with_name("site.css"))))
    return files


def on_page_markdown(markdown, page, **_):
    origin = origins.get(page.file.src_uri)
    if origin and origin.endswith(".md"):
        markdown = relinked(origin, markdown)
    if page.file.src_uri == "glossary.md":
        return markdown
    return markdown + "\n\n" + "".join(f"*[{term}]: {meaning}\n" for term, meaning in glossary())


def on_page_content(html, **_):
    """A word of the glossary is marked where a page has it first."""
    seen = set()

    def first(found):
        new = found[1] not in seen
        seen.add(found[1])
        return found[0] if new else found[2]

    return re.sub(r'<abbr title="([^"]*)">(.*?)</abbr>', first, html)


def on_post_build(config, **_):
    """The site has every name of both interfaces, and loads nothing from elsewhere."""
    site = Path(config.site_dir)
    c, python = (site / "api/c.html").read_text(), (site / "api/python.html").read_text()
    functions = c_interface.functions()
    missing = [name for name in functions if f'id="{name}"' not in c]
    missing += [name for name, module in python_names() if f'id="{module}.{name}"' not in python]
    if missing or len(functions) < 20:
        raise PluginError(f"the site lacks {missing or 'the functions of the C interface'}")
    for page in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|link rel="stylesheet")[^>]*="(https?:[^"]*)"', page.read_text())
        if loaded:
            raise PluginError(f"{page} loads {loaded} from elsewhere")
