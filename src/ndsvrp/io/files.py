"""Reading and writing of files: errors in one line, and no half-written files."""

import os
import secrets
import stat
from pathlib import Path

from ndsvrp.errors import InstanceError

MAX_BYTES = 256 * 2**20  # far larger than any published instance

PathLike = str | os.PathLike[str]


def check_readable(path: PathLike) -> None:
    """Raise unless `path` is a regular file of a sensible size."""
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        raise InstanceError("no such file", file=str(path)) from None
    except (OSError, ValueError) as error:
        raise _refused("read", path, error) from None
    if stat.S_ISDIR(status.st_mode):
        raise InstanceError("is a directory, not a file", file=str(path))
    if not stat.S_ISREG(status.st_mode):
        raise InstanceError("is not a regular file", file=str(path))
    if status.st_size == 0:
        raise InstanceError("is empty", file=str(path))
    if status.st_size > MAX_BYTES:
        size = status.st_size / 2**20
        raise InstanceError(f"is {size:,.0f} MiB large, more than the {MAX_BYTES // 2**20} MiB read", file=str(path))


def read_text(path: PathLike) -> str:
    """Return the text of a UTF-8 file, with plain newlines."""
    check_readable(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise _refused("read", path, error) from None
    if b"\0" in data:
        raise InstanceError("is not a text file", file=str(path))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{data[error.start]:02x} is not UTF-8 text"
        raise InstanceError(what, file=str(path), line=line) from None
    if not text.strip():
        raise InstanceError("is empty", file=str(path))
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write_atomic(path: PathLike, data: bytes) -> None:
    """Write a file completely or not at all: a temporary file beside it is renamed."""
    try:
        if _is_device(path):
            Path(path).write_bytes(data)
            return
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(0, "Is a directory")
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _refused("written", path, error) from None


def check_writable(path: PathLike) -> None:
    """Raise if `path` cannot be written, before a long search starts."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InstanceError("cannot be written (Is a directory)", file=str(path))
    if not _is_device(path) and not target.parent.is_dir():
        raise InstanceError("cannot be written (No such directory)", file=str(path))
    place = Path(path) if _is_device(path) else target.parent
    if not os.access(place, os.W_OK):
        raise InstanceError("cannot be written (Permission denied)", file=str(path))


def _is_device(path: PathLike) -> bool:
    """Return whether this is /dev/stdout or similar, which cannot be renamed over."""
    return Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir()


def _refused(verb: str, path: PathLike, error: OSError | ValueError) -> InstanceError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return InstanceError(f"cannot be {verb} ({reason})", file=str(path))
