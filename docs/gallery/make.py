"""Run every gallery script and paste what it prints into its page: ``python docs/gallery/make.py [name …]``."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
PAGES = {  # script: page that shows it
    "plot_lengthscale.py": "lengthscale.md",
    "plot_basis_functions.py": "basis-functions.md",
    "plot_adaptation.py": "adaptation.md",
    "plot_kernels.py": "kernels.md",
    "plot_mean_and_noise.py": "mean-and-noise.md",
    "plot_model_comparison.py": "model-comparison.md",
}
LARGEST = 150_000  # bytes per picture


def run(script: str) -> str:
    """What a script prints; its pictures are written as it runs."""
    environment = {"OMP_NUM_THREADS": "1"} | dict(os.environ)
    done = subprocess.run(
        [sys.executable, str(HERE / script)], capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode != 0:
        raise SystemExit(f"{script} failed:\n{done.stderr}")
    if done.stderr.strip():
        print(f"{script} warned:\n{done.stderr}", file=sys.stderr)
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def paste(page: Path, script: str, output: str) -> None:
    """Replace the text between the two markers of a page."""
    begin, end = f"<!-- begin output of {script} -->", "<!-- end output -->"
    block = f"{begin}\n```text\n$ python docs/gallery/{script}\n{output}\n```\n{end}"
    text, found = re.subn(re.escape(begin) + ".*?" + re.escape(end), lambda _: block, page.read_text(), flags=re.DOTALL)
    if found != 1:
        raise SystemExit(f"{page.name} needs the markers {begin} and {end} once; found {found}.")
    page.write_text(text)


def main(names: list[str]) -> None:
    for script, page in PAGES.items():
        if names and not any(name in script for name in names):
            continue
        began = time.perf_counter()
        paste(HERE / page, script, run(script))
        print(f"{script}: {time.perf_counter() - began:.0f} s, pasted into {page}")
    for picture in sorted((HERE / "images").glob("*.png")):
        if picture.stat().st_size > LARGEST:
            raise SystemExit(f"{picture.name} has {picture.stat().st_size} bytes; keep pictures below {LARGEST}.")


if __name__ == "__main__":
    main(sys.argv[1:])
