"""Put the results of experiments into the documentation.

    python tools/experiment_pages.py OUT

OUT is the folder of `nds experiment … --out OUT`. For every experiment in it, the rows become
results/experiments/NAME.jsonl, the pictures docs/experiments/img/NAME.png, and the section Results of
docs/experiments/NAME.md its table, with commit, hardware and date of the rows.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from ndsvrp.experiments.catalogue import EXPERIMENTS
from ndsvrp.experiments.rows import FILE, processor, read_rows
from ndsvrp.experiments.run import TABLE

ROOT = Path(__file__).parents[1]
PAGES, ROWS = ROOT / "docs/experiments", ROOT / "results/experiments"
HEADING = "## Results"


def section(folder: Path, pictures: list[Path]) -> str:
    """Return the section Results of a page."""
    head, _, tables = (folder / TABLE).read_text(encoding="utf-8").partition(f"{HEADING}\n")
    table = tables.split("\n## ")[0].strip()  # the paper's own table is on the page
    rows = read_rows(folder / FILE)
    scale = head.split("Scale ")[1].split(":")[0]
    command = f"`nds experiment {folder.name} --scale {scale}`"
    facts = [sorted({str(value) for value in values}) for values in (
        (row.get("commit") for row in rows), (processor(row) for row in rows), (row["date"][:10] for row in rows),
    )]  # fmt: skip
    commits, hardware, dates = (" and ".join(each) for each in facts)
    where = f"Rows: `results/experiments/{folder.name}.jsonl`."
    lines = [HEADING, "", f"{command}, commit {commits}, {hardware}, {dates}. {where}", "", table, ""]
    return "\n".join([*lines, *(f"![{picture.stem}](img/{picture.name})\n" for picture in pictures)])


def main() -> None:
    out = Path(sys.argv[1])
    for path in (PAGES / "img", ROWS):
        path.mkdir(parents=True, exist_ok=True)
    for name in EXPERIMENTS:
        folder = out / name
        if not (folder / TABLE).exists():
            print(f"{name}: no table in {folder}")
            continue
        pictures = sorted(folder.glob("*.png"))
        for picture in pictures:
            shutil.copy(picture, PAGES / "img" / picture.name)
        shutil.copy(folder / FILE, ROWS / f"{name}.jsonl")
        page = PAGES / f"{name}.md"
        before = page.read_text(encoding="utf-8").split(f"\n{HEADING}\n")[0].rstrip()
        page.write_text(f"{before}\n\n{section(folder, pictures)}", encoding="utf-8")
        print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
