"""Check the documentation against the code: ``python docs/check.py [page …]``.

- Relative links, and the headings they point at, exist.
- A Python block that begins with ``# src/…`` is a quotation: each of its lines stands in that file.
- The other Python blocks of the README and of how-to and theory pages run, one namespace per page, and print the text
  block that follows.
"""

import contextlib
import io
import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(text: str) -> set[str]:
    """The names under which headings can be linked to."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def broken_links(page: Path) -> list[str]:
    problems = []
    for target in LINK.findall(BLOCK.sub("", page.read_text())):
        if target.startswith(("http:", "https:")):
            continue
        name, _, heading = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists():
            problems.append(f"link to {target}: no such file")
        elif heading and heading not in anchors(file.read_text()):
            problems.append(f"link to {target}: no such heading")
    return problems


def stale_quotations(page: Path) -> list[str]:
    problems = []
    for kind, code in BLOCK.findall(page.read_text()):
        first, _, rest = code.partition("\n")
        if kind != "python" or not first.startswith("# src/"):
            continue
        source = {line.split("  #")[0].strip() for line in (ROOT / first[2:].split()[0]).read_text().splitlines()}
        wanted = (line.split("  #")[0].strip() for line in rest.splitlines())
        problems += [f"{first[2:]} no longer has: {line}" for line in wanted if line not in source | {"", "..."}]
    return problems


def failing_examples(page: Path) -> list[str]:
    blocks = BLOCK.findall(page.read_text())
    space: dict[str, object] = {"__name__": page.stem}
    problems = []
    for (kind, code), (next_kind, expected) in zip(blocks, [*blocks[1:], ("", "")], strict=False):
        if kind != "python" or code.startswith("# src/"):
            continue
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(code, str(page), "exec"), space)
        except Exception as error:
            problems.append(f"{type(error).__name__}: {error}, in\n{code}")
            break
        if next_kind == "text" and printed.getvalue().strip() != expected.strip():
            problems.append(f"printed\n{printed.getvalue()}instead of\n{expected}")
    return problems


def main(names: list[str]) -> None:
    failed = False
    for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))):
        name = str(page.relative_to(ROOT if page.parent == ROOT else DOCS))
        if names and not any(n in name for n in names):
            continue
        problems = broken_links(page) + stale_quotations(page)
        if page.parent == ROOT or page.parent.name in ("howto", "theory"):
            problems += failing_examples(page)
        failed |= bool(problems)
        print(f"{name}: {'ok' if not problems else ''}", *problems, sep="\n  " if problems else "")
    raise SystemExit(failed)


if __name__ == "__main__":
    main(sys.argv[1:])
