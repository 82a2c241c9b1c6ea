"""A headless Chromium, driven over a pipe by its DevTools protocol: pages as people see and touch them."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["Browser", "chromium_program"]

_PATIENCE = 60.0  # seconds that a reply may take

_KEYS = {
    "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "PageUp": 33, "PageDown": 34, "Tab": 9,
}  # fmt: skip


def chromium_program() -> str | None:
    """Where Chromium is, None if there is none."""
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return next((path for path in found if path is not None), None)


class Browser:
    """One tab. What the page logs, throws and asks the network for is kept in `faults` and `requests`."""

    def __init__(self, program: str, folder: Path) -> None:
        self.faults: list[str] = []
        self.requests: list[str] = []
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session: str | None = None
        there, self._out = os.pipe()
        self._in, back = os.pipe()

        def connect() -> None:
            # Both ends aside first: either may be 3 or 4 itself.
            read, write = os.dup(there), os.dup(back)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self._process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
             f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=connect, close_fds=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(there)
        os.close(back)
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            told = self._read()
            if told.get("id") == number:
                assert "error" not in told, f"{method}: {told['error']}"
                return dict(told["result"])

    def _read(self) -> dict[str, Any]:
        """Return the next message, and keep what it says of faults and requests."""
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser is silent"
            self._buffer += os.read(self._in, 1 << 20)
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        own = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded":
                self.faults.append(json.dumps(own))
            case "Network.requestWillBeSent":
                self.requests.append(own["request"]["url"])
        return message

    # ------------------------------------------------------------------ what people do

    def open(self, path: Path, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Open a file in a window of a size, with a colour scheme of the system."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=width < 600)  # fmt: skip
        self.scheme(scheme)
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while (
            self.evaluate("document.readyState") != "complete"
            or self.evaluate("location.href") == "about:blank"
        ):
            time.sleep(0.02)
        self.settle()

    def settle(self) -> None:
        """Wait until what has changed is drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def scheme(self, name: str) -> None:
        """Let the system prefer light or dark."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])
        self.settle()

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript in the page; promises are awaited."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def box(self, selector: str) -> tuple[float, float, float, float]:
        """Return left, top, width and height of an element in the window, to which it is scrolled."""
        return tuple(self.evaluate(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
            f" return [b.x, b.y, b.width, b.height]; }})(document.querySelector({json.dumps(selector)}))"
        ))  # fmt: skip

    def point(self, selector: str, across: float = 0.5, down: float = 0.5) -> tuple[float, float]:
        """Move the mouse to a place in an element, in shares of its sides."""
        left, top, width, height = self.box(selector)
        x, y = left + across * width, top + down * height
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        return x, y

    def click(self, selector: str, across: float = 0.5, down: float = 0.5) -> None:
        """Press and release the left button there."""
        x, y = self.point(selector, across, down)
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def touch(self, selector: str, across: float = 0.5, down: float = 0.5) -> None:
        """Tap with a finger."""
        left, top, width, height = self.box(selector)
        at = {"x": left + across * width, "y": top + down * height}
        self.ask("Input.dispatchTouchEvent", type="touchStart", touchPoints=[at])
        self.ask("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def key(self, name: str) -> None:
        """Press and release a key."""
        code = _KEYS.get(name) or ord(name.upper())
        text = {} if name in _KEYS else {"text": name}
        self.ask(
            "Input.dispatchKeyEvent", type="keyDown", key=name, code=name, windowsVirtualKeyCode=code, **text
        )
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=code)

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """Write a PNG of the window, or of the whole page."""
        found = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))
