"""What all pictures share: colours, axes, files."""

import io
import logging
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ndsvrp.errors import NdsError
from ndsvrp.io.files import check_name, write_atomic
from ndsvrp.io.save import PICTURES
from ndsvrp.metric import Floats

Colour = tuple[float, float, float]
"""Red, green and blue, from 0 to 1."""

INK = "#22262b"
FAINT = "#9aa3ad"

#: Oklab (Ottosson 2020) to cone responses, and those cubed to linear sRGB.
_LAB_TO_LMS = np.array(
    [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.2914855480]]
)
_LMS_TO_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)


def palette(count: int) -> Floats:
    """Return (count, 3) sRGB colours of similar strength; consecutive ones differ much in hue.

    Hues advance by the golden angle in Oklch; three lightnesses alternate, so that close hues differ too.
    """
    number = np.arange(count)
    hue = np.deg2rad(255.0 + 137.50776 * number)
    lightness = np.array([0.58, 0.70, 0.48])[number % 3]
    chroma = np.array([0.15, 0.13, 0.12])[number % 3]
    lab = np.stack([lightness, chroma * np.cos(hue), chroma * np.sin(hue)], axis=-1)
    linear = np.clip((lab @ _LAB_TO_LMS.T) ** 3 @ _LMS_TO_RGB.T, 0.0, 1.0)
    rgb: Floats = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return rgb


#: Colours of solvers, apart also for colour-blind readers (after Okabe and Ito 2008).
SOLVERS = {
    "nds": "#0072b2", "hybrid": "#d55e00", "sisr": "#e69f00", "pyvrp": "#009e73", "hgs": "#cc79a7",
    "ortools": "#56b4e9", "vroom": "#7f6a3f", "lkh": "#6a3d9a",
}  # fmt: skip
SHADES = (1.0, 0.6, 1.35, 0.8, 1.2)  # lightness of the first, second, … configuration of a solver


def solver_colours(names: Sequence[str]) -> dict[str, Colour]:
    """Return a colour per solver; the same names have the same colours in every picture.

    A known solver has its own colour, which configurations of it (`nds-policy-cuda-128`) share in other shades. Others
    get those of `palette`.
    """
    unique = list(dict.fromkeys(names))
    plain = {name: "sisr" if name == "SISRs" else name.lower() for name in unique}
    families = {name: re.split(r"[-@ ,(]", plain[name], maxsplit=1)[0] for name in unique}
    others = iter(palette(len(unique)).tolist())
    taken: dict[str, int] = {}
    colours: dict[str, Colour] = {}
    # By name, in whatever order they are given; the plain name has the plain colour.
    for name in sorted(unique, key=lambda name: (plain[name] != families[name], plain[name])):
        family = families[name]
        if family in SOLVERS:
            shade = taken[family] = taken.get(family, -1) + 1
            colours[name] = _shaded(SOLVERS[family], SHADES[shade % len(SHADES)])
    for name in unique:
        if name not in colours:
            red, green, blue = next(others)
            colours[name] = red, green, blue
    return {name: colours[name] for name in unique}


def _shaded(colour: str, lightness: float) -> Colour:
    """Return a colour that is darker (below 1) or lighter (above 1)."""
    red, green, blue = (
        channel * lightness if lightness <= 1 else 1 - (1 - channel) * (2 - lightness) for channel in to_rgb(colour)
    )
    return red, green, blue


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """Return an empty figure with one pair of axes."""
    figure, (axes,) = canvas_of(1, 1, width, height)
    return figure, axes


def canvas_of(count: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Return an empty figure with `count` pairs of axes, row by row; width and height are those of a pair."""
    rows = -(-count // columns)
    size = (width * min(columns, count), height * rows)
    figure = Figure(figsize=size, dpi=150, layout="constrained", facecolor="white")
    found = [figure.add_subplot(rows, min(columns, count), number + 1) for number in range(count)]
    for axes in found:
        axes.tick_params(which="both", colors=FAINT, labelsize=8, length=3)
        for spine in axes.spines.values():
            spine.set_color("#d5dae0")
    return figure, found


def open_axes(axes: Axes, x_label: str, y_label: str, title: str) -> None:
    """Give axes a grid, labels and a title, and remove the frame above and on the right."""
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    axes.grid(color="#eceff2", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_title(title, color=INK, fontsize=10)


def log_axis(axes: Axes) -> None:
    """Make the x axis logarithmic, with plain numbers: 1, 2, 5, 10, …"""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def check_format(file: str | PathLike[str] | None) -> None:
    """Raise for a file ending that is not supported, before anything is drawn."""
    if file is None:
        return
    check_name(file)
    if Path(file).suffix.lower() not in PICTURES:
        raise NdsError(f"{file}: pictures are written as {', '.join(PICTURES)}, not as '{Path(file).suffix}'")


def to_svg(figure: Figure) -> bytes:
    """Return an SVG picture; the same figure always gives the same bytes."""
    picture = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "ndsvrp"}):
        figure.savefig(picture, format="svg", metadata={"Date": None})
    return picture.getvalue()


def write(figure: Figure, file: str | PathLike[str]) -> None:
    """Write the figure in the format of the file's ending, completely or not at all."""
    kind = Path(file).suffix.lower()[1:]
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    picture = io.BytesIO()
    if kind == "pdf":
        logging.getLogger("fontTools.subset").setLevel(logging.WARNING)  # dozens of lines per file at INFO
    with matplotlib.rc_context({"pdf.fonttype": 42}):  # TrueType: publishers refuse the default, Type 3
        figure.savefig(picture, format=kind, metadata=undated)
    write_atomic(file, picture.getvalue())
