"""Chromium without a window, driven through the pipe of its DevTools protocol."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--remote-debugging-pipe", "--hide-scrollbars", "--force-color-profile=srgb",
)  # fmt: skip
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)


class Browser:
    """One page. `close` ends the browser."""

    def __init__(self, width: int = 1360, height: int = 860) -> None:
        assert CHROMIUM is not None
        self.folder = tempfile.TemporaryDirectory(prefix="nds-chromium-", ignore_cleanup_errors=True)
        ends = [*os.pipe(), *os.pipe()]
        commands, self._commands, self._answers, answers = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
        self.process = subprocess.Popen(  # it reads commands from descriptor 3 and answers on descriptor 4
            [sys.executable, "-I", "-S", "-c", LAUNCH, str(commands), str(answers), CHROMIUM, *FLAGS,
             f"--user-data-dir={self.folder.name}"],
            pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (*ends, commands, answers):
            os.close(end)
        self._number, self._rest, self.session, self.events = 0, b"", None, list[dict[str, Any]]()
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._commands)
        os.close(self._answers)
        self.folder.cleanup()

    def send(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol and return its result; events that arrive meanwhile are collected."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._answers, 1 << 20)
            assert chunk, "the browser has ended"
            self._rest += chunk
        message, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(message))

    def open(self, address: str) -> None:
        self.send("Page.navigate", url=address)

    def run(self, expression: str) -> Any:
        """Evaluate JavaScript in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = 20.0) -> Any:
        """Wait until an expression is true, and return its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.run(expression):
                return value
            time.sleep(0.05)
        raise AssertionError(f"still not true: {expression}; text: {self.run('document.body?.innerText')}")

    def choose_file(self, selector: str, file: Path) -> None:
        """Choose a file in a file input."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(file)])

    def screenshot(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def requested(self) -> list[str]:
        """The addresses that the page asked for."""
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        """Exceptions and errors in the log of the browser."""
        found = [str(e["params"]) for e in self.events if e.get("method") == "Runtime.exceptionThrown"]
        entries = [e["params"]["entry"] for e in self.events if e.get("method") == "Log.entryAdded"]
        return found + [entry["text"] for entry in entries if entry["level"] == "error"]
