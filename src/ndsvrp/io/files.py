"""Reading and writing of files: one guard for everything that is opened, and no half-written files."""

import os
import secrets
import stat
import sys
from pathlib import Path

from ndsvrp.errors import InstanceError, NdsError

MIB = 2**20
MAX_BYTES = 256 * MIB  # far larger than any published instance, solution or model
MAX_SETTINGS = 64 * 2**10  # of a training configuration

STANDARD = "-"  # as a path: standard input or output

PathLike = str | os.PathLike[str]


def read_bytes(path: PathLike, limit: int = MAX_BYTES, *, may_be_empty: bool = False, last: int | None = None) -> bytes:
    """Return the content of a regular file of at most `limit` bytes. Pipes, devices and folders are refused.

    The path `-` is standard input. `last`: read only this number of bytes at the end of the file.
    """
    check_name(path)
    if is_standard(path):
        return _read_standard_input(limit, may_be_empty=may_be_empty)
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise InstanceError("is not a regular file", file=str(path))
            _check_size(path, status.st_size, limit)
            if last is not None:
                file.seek(max(0, status.st_size - last))
            data = file.read(status.st_size)  # no more, if it grows meanwhile
    except FileNotFoundError:
        raise InstanceError("no such file", file=str(path)) from None
    except IsADirectoryError:
        raise InstanceError("is a directory, not a file", file=str(path)) from None
    except (OSError, ValueError) as error:
        raise refused("read", path, error) from None
    if not data and not may_be_empty:
        raise InstanceError("is empty", file=str(path))
    return data


def check_content(path: PathLike, data: bytes, limit: int = MAX_BYTES) -> None:
    """Refuse the content of a file as `read_bytes` refuses the file."""
    check_name(path)
    _check_size(path, len(data), limit)
    if not data:
        raise InstanceError("is empty", file=str(path))


def read_text(path: PathLike, limit: int = MAX_BYTES, *, may_be_empty: bool = False) -> str:
    """Return the text of a UTF-8 file, with plain newlines. For the guard see `read_bytes`."""
    return decode(path, read_bytes(path, limit, may_be_empty=may_be_empty), may_be_empty=may_be_empty)


def decode(path: PathLike, data: bytes, *, may_be_empty: bool = False) -> str:
    """Return the content of a file as text, with plain newlines."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InstanceError("is UTF-16 text: save it as UTF-8", file=str(path))
    if b"\0" in data:
        raise InstanceError("is not a text file", file=str(path))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{data[error.start]:02x} is not UTF-8 text: save the file as UTF-8"
        raise InstanceError(what, file=str(path), line=line) from None
    if not text.strip() and not may_be_empty:
        raise InstanceError("is empty", file=str(path))
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write_atomic(path: PathLike, data: bytes) -> None:
    """Write a file completely or not at all: a temporary file beside it is renamed.

    A file that is replaced keeps its mode; the mode of a new one follows the umask. The path `-` is standard output.
    """
    try:
        if is_standard(path):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return
        if is_device(path):
            Path(path).write_bytes(data)
            return
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(0, "Is a directory")
        temporary = target.with_name(f".nds-{secrets.token_hex(8)}.tmp")  # short: fits if the target's name does
        try:
            with temporary.open("xb") as file:
                if target.exists():
                    os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise refused("written", path, error) from None


def check_writable(path: PathLike) -> None:
    """Raise if `path` cannot be written, before a long search starts."""
    check_name(path)
    if is_standard(path):
        return
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise InstanceError("cannot be written (Is a directory)", file=str(path))
        to_device = is_device(path)
        if not to_device and not target.parent.is_dir():
            raise InstanceError("cannot be written (No such directory)", file=str(path))
        places = [Path(path)] if to_device else [target.parent, *([target] if target.exists() else [])]
    except (OSError, ValueError) as error:  # a name that is too long, or with a NUL
        raise refused("written", path, error) from None
    if not all(os.access(place, os.W_OK) for place in places):
        raise InstanceError("cannot be written (Permission denied)", file=str(path))


def is_standard(path: PathLike) -> bool:
    """Return whether a path stands for standard input or output."""
    return os.fspath(path) == STANDARD


def _read_standard_input(limit: int, *, may_be_empty: bool) -> bytes:
    try:
        data: bytes = sys.stdin.buffer.read(limit + 1)
    except (AttributeError, OSError, ValueError) as error:  # closed before the start
        raise InstanceError(f"standard input cannot be read ({error})", file=STANDARD) from None
    if len(data) > limit:
        raise InstanceError(f"standard input has more than the {_size(limit)} read", file=STANDARD)
    if not data and not may_be_empty:
        raise InstanceError("standard input is empty", file=STANDARD)
    return data


def check_name(path: PathLike) -> None:
    """Raise unless the name is UTF-8 text, which results can state."""
    if not isinstance(path, str | os.PathLike):
        raise NdsError(f"a file is given by its path, got {type(path).__name__}")
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        raise InstanceError("the name of the file is not UTF-8 text", file=str(path)) from None


def exists(path: PathLike) -> bool:
    """Return whether there is a file or folder; False for a name that no file can have."""
    try:
        return Path(path).exists()
    except OSError:  # too long
        return False


def refused(verb: str, path: PathLike, error: OSError | ValueError) -> InstanceError:
    """Return the error of a file that could not be read or written."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return InstanceError(f"cannot be {verb} ({reason})", file=str(path))


def _check_size(path: PathLike, size: int, limit: int) -> None:
    if size > limit:
        raise InstanceError(f"is {_size(size)} large, more than the {_size(limit)} read", file=str(path))


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for the writer of a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def is_device(path: PathLike) -> bool:
    """Return whether this is /dev/stdout or similar, which cannot be renamed over."""
    return Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir()


def _size(count: int) -> str:
    return f"{count / MIB:,.0f} MiB" if count >= MIB else f"{count / 2**10:,.0f} KiB"
