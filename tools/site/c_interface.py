# SPDX-License-Identifier: Apache-2.0
"""The page of the C interface, from the comments of its headers."""

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "src/bind"
HEADERS = ("tradewind.h", "tradewind_data.h", "tradewind_checkpoint.h")


def functions():
    """Names of all functions of the headers."""
    texts = "".join((FOLDER / name).read_text() for name in HEADERS)
    return re.findall(r"^TW_API .*?(tw_\w+)\(", texts, re.M)


def page():
    """The headers: what a comment says, then what it is about."""
    text = "# The C interface\n\n[The guide](../cpp.md) has the story.\n"
    for name in HEADERS:
        header = (FOLDER / name).read_text()
        body = re.search(r"#define \w+_H\n(.*?)(#ifdef __cplusplus\n\}|\Z)", header, re.S)[1]
        text += f"\n## {name}\n"
        body = re.sub(r"^(/\* -+ .*\*/)\n(?=\S)", r"\1\n\n", body, flags=re.M)  # a heading alone
        for block in re.split(r"\n\n+(?=\S)", body.strip()):
            comment = re.match(r"/\*(.*?)\*/\n?(.*)", block, re.S)
            said, code = (comment[1], comment[2]) if comment else ("", block)
            said = re.sub(r"^ \* ?", "", said, flags=re.M).strip()
            said = re.sub(r"((?:^  .*\n?)+)", r"```\n\1\n```\n", said, flags=re.M)
            section = re.fullmatch(r"-+ (.*)", said)
            if section:
                text += f"\n### {section[1]}\n"
            elif not code.startswith("#"):
                names = re.findall(r"\b(tw_\w+)(?=\(|;\n*\Z| \{)", code)
                anchor = "".join(f'<a id="{one}"></a>' for one in dict.fromkeys(names))
                text += f"\n{anchor}\n\n{said}\n" + (f"\n```c\n{code.strip()}\n```\n" if code.strip() else "")
    return text
