"""Elements of SVG pictures as text."""

from ndsvrp.metric import Floats
from ndsvrp.webpage import html_text


def shape(tag: str, inside: str = "", **attributes: object) -> str:
    """Return an element; `_` in a name becomes `-`, and `class_` becomes `class`."""
    words = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html_text(_short(value))}"' for name, value in attributes.items()
    )
    return f"<{tag}{words}>{inside}</{tag}>" if inside else f"<{tag}{words}/>"


def title(text: str) -> str:
    """Return what a browser shows beside the pointer."""
    return f"<title>{html_text(text)}</title>"


def colour(rgb: Floats) -> str:
    """Return `#rrggbb`."""
    return "#" + "".join(f"{round(255 * float(channel)):02x}" for channel in rgb)


def _short(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
