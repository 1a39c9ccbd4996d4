"""The map: routes in colours, the depot as a square, unserved customers hollow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ndsvrp.clock import time_text
from ndsvrp.metric import Floats
from ndsvrp.problem import Problem
from ndsvrp.report.svg import shape, title
from ndsvrp.text import amount, number
from ndsvrp.webpage import html_text

if TYPE_CHECKING:
    from ndsvrp.search.result import Result

WIDTH, MARGIN = 900.0, 20.0
TALLEST = 1.1  # height over width
MOST_LABELS, LONGEST_LABEL = 40, 24  # customers, letters
LETTER = 7.0  # width of a letter of a label


def route_map(result: Result, colours: list[str]) -> str:
    """Return the picture; each route is a group `data-route`, which the page highlights."""
    points, height = _placed(result)
    size = float(np.clip(90 / np.sqrt(len(points)), 1.2, 5.0))
    parts = []
    for route, colour in zip(result.schedule, colours, strict=True):
        nodes = [stop.node for stop in route.stops]
        inner = " ".join(f"{x:.1f},{y:.1f}" for x, y in points[nodes[1:-1]])
        ends = [(nodes[0], nodes[1]), (nodes[-2], nodes[-1])]
        lines = [shape("polyline", points=inner, stroke=colour, stroke_width=max(0.8, size / 2.2))]
        lines += [
            shape(
                "line", x1=points[a, 0], y1=points[a, 1], x2=points[b, 0], y2=points[b, 1], stroke=colour,
                stroke_width=max(0.6, size / 3), stroke_dasharray="4 3", opacity=0.45,
            )
            for a, b in ends
        ]  # fmt: skip
        label = f"route {route.number}: {amount(len(nodes) - 2, 'stop')}, load {number(route.load)}"
        dots = [
            shape("circle", title(f"{_about(result.problem, stop.node)}; {label}"), cx=x, cy=y, r=size, fill=colour)
            for stop, (x, y) in zip(route.stops[1:-1], points[nodes[1:-1]].tolist(), strict=True)
        ]
        parts.append(shape("g", title(label) + "".join(lines + dots), class_="route", data_route=route.number))
    for customer in result.report.unserved:
        text = title(f"{_about(result.problem, customer)}; unserved")
        x, y = points[customer].tolist()
        parts.append(shape("circle", text, cx=x, cy=y, r=size * 1.1, fill="white", stroke="#5a626b"))
    x, y = (points[0] - 6).tolist()
    parts.append(shape("rect", title(result.problem.name_of(0)), x=x, y=y, width=12, height=12, fill="#22262b"))
    parts += _labels(result.problem, points)
    return shape(
        "svg", "".join(parts), id="map", viewBox=f"0 0 {WIDTH:.0f} {height:.0f}", role="img", fill="none",
        xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip


def _labels(problem: Problem, points: Floats) -> list[str]:
    """Return the names beside their places, first on the side with more room; without those that would cover others."""
    if problem.names is None or problem.customers > MOST_LABELS:
        return []
    labels, taken = [], np.column_stack([points - 5, points + 5])  # boxes: left, top, right, bottom
    for name, (x, y) in zip(problem.names, points.tolist(), strict=True):
        short = name if len(name) <= LONGEST_LABEL else name[: LONGEST_LABEL - 1] + "…"
        right, left = ("start", x + 9, x + 9 + LETTER * len(short)), ("end", x - 9 - LETTER * len(short), x - 9)
        for anchor, begin, end in (right, left) if x < WIDTH / 2 else (left, right):
            box = np.array([begin, y - 18, end, y - 6])
            if (
                begin > 0
                and end < WIDTH
                and not ((taken[:, :2] < box[2:]) & (taken[:, 2:] > box[:2])).all(axis=1).any()
            ):
                at = begin if anchor == "start" else end
                labels.append(shape("text", html_text(short), x=at, y=y - 7, text_anchor=anchor))
                taken = np.vstack([taken, box])
                break
    return labels


def prize_text(problem: Problem, node: int) -> str:
    """Return the prize of a customer in words; nothing for the depot, and for problems without prizes."""
    if problem.prize is None or node == 0:
        return ""
    return "required" if problem.required[node] else number(float(problem.prize[node]))


def _about(problem: Problem, node: int) -> str:
    """Return what is known of a customer: name, demand, window, prize."""
    parts = [problem.name_of(node), f"demand {number(float(problem.demand[node]))}"]
    if problem.windows is not None:
        ready, due = (time_text(problem, time) for time in problem.windows[node].tolist())
        parts.append(f"window {ready} to {due}")
    if prize := prize_text(problem, node):
        parts.append(prize if prize == "required" else f"prize {prize}")
    return ", ".join(parts)


def _placed(result: Result) -> tuple[Floats, float]:
    """Return (N+1, 2) positions in the picture, north up, and its height."""
    points = np.array(result.problem.coordinates)
    if result.problem.geographic:  # a degree of longitude is shorter than one of latitude
        points[:, 0] *= np.cos(np.deg2rad(points[:, 1].mean()))
    low, extent = points.min(axis=0), np.ptp(points, axis=0)
    inside = WIDTH - 2 * MARGIN
    scale = min(
        inside / extent[0] if extent[0] > 0 else np.inf, TALLEST * inside / extent[1] if extent[1] > 0 else np.inf
    )
    scale = scale if np.isfinite(scale) else 1.0
    placed = MARGIN + (points - low) * scale
    placed[:, 0] += (inside - extent[0] * scale) / 2
    height = float(extent[1] * scale + 2 * MARGIN)
    placed[:, 1] = height - placed[:, 1]
    return placed, height
