"""HTML pages that refer to no other file: their frame and style, and text in them."""

import html

from ndsvrp.text import printable

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #22262b; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; font-size: 1.2rem; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.7rem; text-align: left; border-bottom: 1px solid #e3e7eb; white-space: nowrap; }
th { border-bottom: 2px solid #9aa3ad; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
ul { color: #5a626b; font-size: 0.85rem; }
img { max-width: 100%; }
""".strip()


def html_text(text: str) -> str:
    """Return text for HTML; characters that are not printable are escaped."""
    return html.escape(printable(text))


def page(title: str, body: str, style: str = "") -> str:
    """Return a whole page. `title` is plain text, `body` is HTML, `style` is added to the common one."""
    name = html_text(title)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{name}</title>\n'
        f"<style>\n{STYLE}\n{style}</style>\n</head>\n<body>\n<h1>{name}</h1>\n{body}</body>\n</html>\n"
    )
