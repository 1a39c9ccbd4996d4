"""Files of results. Paths are checked before the search begins; a file is written completely or not at all."""

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ndsvrp.cli.formatting import plain_number
from ndsvrp.errors import InstanceError, NdsError
from ndsvrp.io import write_result, write_solution
from ndsvrp.io.files import check_writable, exists, is_device, is_standard, write_atomic
from ndsvrp.io.folders import instance_files, is_folder
from ndsvrp.io.geojson import require_degrees
from ndsvrp.io.result import describe, json_bytes
from ndsvrp.io.save import FILES, PICTURES, check_ending, check_json, check_page, save
from ndsvrp.problem import Problem
from ndsvrp.search.result import Result

SUMMARY = ("instance", "cost", "distance", "lost_prizes", "vehicle_costs", "routes", "unserved",
           "seconds", "iterations", "reconstructions", "seed", "stopped")  # fmt: skip


def names_of(instances: Path) -> tuple[str, ...]:
    """Return the names of the files in a folder of instances; a set has none."""
    return tuple(path.stem for path in instance_files(instances)) if is_folder(instances) else ()


def matrices_of(stated: Mapping[str, Any]) -> tuple[Path, ...]:
    """Return the files of matrices among what is stated beside an instance."""
    return tuple(stated[name] for name in ("distance", "duration") if stated.get(name) is not None)


def make_folder(folder: Path) -> None:
    """Make a folder for several files, unless it exists."""
    if is_folder(folder):
        return
    check_writable(folder)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InstanceError(f"cannot be made a folder ({error.strerror})", file=str(folder)) from None


def check_paths(instance: Path, *outputs: Path | None, matrices: Sequence[Path] = ()) -> None:
    """Raise for paths that cannot be written, are equal, or would overwrite an instance or its matrix."""
    instances = set(map(os.path.realpath, instance_files(instance) if is_folder(instance) else [instance]))
    lengths = set(map(os.path.realpath, matrices))
    seen = set[str]()
    for path in (path for path in outputs if path is not None):
        check_writable(path)
        real = os.path.realpath(path)
        if not is_standard(path) and real in instances:
            raise InstanceError("is the instance itself, it would be overwritten", file=str(path))
        if real in lengths:
            raise InstanceError("is a matrix of the instance, it would be overwritten", file=str(path))
        if real in seen:
            raise InstanceError("is given for two outputs", file=str(path))
        seen.add(real)


@dataclass(frozen=True)
class Files:
    """The files of one result."""

    solution: Path | None = None
    json: Path | None = None
    plot: Path | None = None
    report: Path | None = None
    matrices: tuple[Path, ...] = ()  #: that belong to the instance

    def check(self, instance: Path, problem: Problem) -> None:
        """Raise now for what would fail after the search."""
        check_paths(instance, self.solution, self.json, self.plot, self.report, matrices=self.matrices)
        if self.solution is not None:
            check_ending(self.solution)
        if self.json is not None:
            check_json(self.json)
        if self.report is not None:
            check_page(self.report)
        if self.plot is not None:
            from ndsvrp.plot.style import check_format  # imports matplotlib

            check_format(self.plot)
            if problem.coordinates is None:
                raise NdsError(f"'{problem.name}' has no coordinates, only distances: --plot cannot draw it")
        if self.solution is not None and self.solution.suffix.lower() == ".geojson":
            require_degrees(problem)

    def write(self, result: Result) -> tuple[list[Path], NdsError | None]:
        """Write all files, also after an error. Return the files written and the first error.

        A partial solution is not written as `.sol`, which cannot say that it is one.
        """
        errors: list[NdsError] = []
        written = []
        writers = {
            save: self.solution if result.report.feasible else None, write_result: self.json,
            _write_plot: self.plot, _write_report: self.report,
        }  # fmt: skip
        for write, path in writers.items():
            if path is None:
                continue
            try:
                write(path, result)
                written.append(path)
            except NdsError as error:
                errors.append(error)
        return written, errors[0] if errors else None


@dataclass(frozen=True)
class Folder:
    """The files of a set: 0000.sol, 0001.sol, …, summary.csv; and one JSON file with all results."""

    folder: Path | None = None
    json: Path | None = None
    names: tuple[str, ...] = ()  #: of the instances; by default their numbers

    def name(self, index: int) -> str:
        """Return the name of an instance: that of its file in a folder, if all have different ones."""
        return self.names[index] if len(set(self.names)) == len(self.names) > index else f"{index:04d}"

    def prepare(self, instance: Path) -> None:
        """Make the folder, or raise now for what would fail after the search."""
        check_paths(instance, self.json)
        if self.json is not None:
            check_json(self.json)
        if self.folder is None:
            return
        if is_standard(self.folder):
            raise NdsError("--out - is for one solution; for a set, --json - writes all results")
        if os.path.realpath(self.folder) == os.path.realpath(instance):
            what = "is the folder of the instances, summary.csv would be read as one of them: name another"
            raise InstanceError(what, file=str(self.folder))
        if not exists(self.folder) or not self.folder.is_dir():
            if (suffix := self.folder.suffix.lower()) in (*FILES, *PICTURES):
                raise InstanceError(f"'{suffix}' is a file; for a set, --out names a folder", file=str(self.folder))
            make_folder(self.folder)
        check_writable(self.folder / "summary.csv")

    def write(self, index: int, results: Mapping[int, Result], rows: Mapping[int, dict[str, Any]]) -> None:
        """Write the newest result, that of `index`, and update the files of all, which are in the order of the set.

        A partial solution is in the JSON, which says so.
        """
        if self.folder is not None:
            if index in results and results[index].report.feasible:
                _write_solution(self.folder / f"{self.name(index)}.sol", results[index])
            buffer = io.StringIO()
            table = csv.DictWriter(buffer, SUMMARY, lineterminator="\n")
            table.writeheader()
            table.writerows(rows[i] for i in sorted(rows))
            write_atomic(self.folder / "summary.csv", buffer.getvalue().encode())
        if self.json is not None and not _is_stream(self.json):
            _write_results(self.json, results)

    def finish(self, results: Mapping[int, Result]) -> None:
        """Write the results where nothing that was written can be replaced: once, when the searches are over."""
        if self.json is not None and _is_stream(self.json):
            _write_results(self.json, results)


def summary_row(index: int | str, result: Result) -> dict[str, Any]:
    """Return the line of a result in the summary."""
    report = result.report
    values = (
        index, plain_number(report.cost), plain_number(report.distance), plain_number(report.lost_prizes),
        plain_number(report.vehicle_costs), len(result.solution.routes), len(report.unserved),
        round(result.seconds, 3), result.iterations, result.reconstructions, result.seed, result.stopped,
    )  # fmt: skip
    return dict(zip(SUMMARY, values, strict=True))


def failed_row(index: int | str, unserved: int, seed: int) -> dict[str, Any]:
    """Return the line of an instance without a feasible solution."""
    return dict.fromkeys(SUMMARY) | {"instance": index, "unserved": unserved, "seed": seed, "stopped": "no solution"}


def _is_stream(path: Path) -> bool:
    return is_standard(path) or is_device(path)


def _write_results(path: Path, results: Mapping[int, Result]) -> None:
    write_atomic(path, json_bytes([describe(results[i]) for i in sorted(results)]))


def _write_solution(path: Path, result: Result) -> None:
    write_solution(path, result.solution, result.cost)


def _write_plot(path: Path, result: Result) -> None:
    result.plot(path)


def _write_report(path: Path, result: Result) -> None:
    result.to_html(path)
