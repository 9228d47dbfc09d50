# SPDX-License-Identifier: Apache-2.0
"""A headless browser (scripts/setup --browser), driven through its debugging pipe: real keys, real pictures."""

import base64
import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import tempfile
import time

import pytest
from braid_build import PATIENCE_S, REPOSITORY

BROWSER = REPOSITORY / "build" / "browser" / "browser"
needs_browser = pytest.mark.skipif(
    not BROWSER.exists(), reason="no browser: scripts/setup --browser puts one into build/browser"
)
SWITCHES = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
]  # fmt: skip
# Of DevTools' Input.dispatchKeyEvent.
KEYS = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "End": 35, "Home": 36}


class Browser:
    """One tab. `errors`: what the page logs as an error, throws, or may not do by its policy; `refused`: answers that
    were errors, which are no mistake of the page."""

    def __init__(self, width: int = 1200, height: int = 900, *, dark: bool = False, prefix: tuple[str, ...] = ()):
        self._folder = tempfile.TemporaryDirectory()
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        self._process = subprocess.Popen(
            [*prefix, str(BROWSER), *SWITCHES, f"--user-data-dir={self._folder.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: place_descriptors(to_browser, from_browser), pass_fds=(3, 4), start_new_session=True,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._rest = 0, b""
        self._session: str | None = None
        self.errors: list[str] = []
        self.refused: list[str] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        (tab,) = [one["targetId"] for one in targets if one["type"] == "page"]
        self._session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        if dark:
            self.set_scheme("dark")

    def set_scheme(self, scheme: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def resize(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def call(self, method: str, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self._next(deadline)
            if answer.get("id") != self._number:
                self._note(answer)
                continue
            assert "error" not in answer, f"{method}: {answer['error']}"
            return answer["result"]

    def _next(self, deadline: float) -> dict:
        while b"\0" not in self._rest:
            readable, _, _ = select.select([self._read], [], [], max(0, deadline - time.monotonic()))
            assert readable, "the browser does not answer"
            got = os.read(self._read, 1 << 20)
            assert got, "the browser has ended"
            self._rest += got
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict) -> None:
        parameters = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description", details["text"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "assert"):
                said = [str(one.get("value", one.get("description"))) for one in parameters["args"]]
                self.errors.append(" ".join(said))
            case "Log.entryAdded" if parameters["entry"]["level"] == "error":
                entry = parameters["entry"]
                list_of = self.refused if entry["source"] == "network" else self.errors
                list_of.append(f"{entry['text']} {entry.get('url', '')}")

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def run(self, expression: str):
        """The value of a JavaScript expression, as JSON has it."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, f"{expression}: {got}"
        return got["result"].get("value")

    def until(self, expression: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self.run(f"Boolean({expression})"):
            assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {expression}\n{self.text()[:2000]}"
            time.sleep(0.05)

    def text(self) -> str:
        """What is to be read on the page."""
        return self.run("document.body.innerText")

    def press(self, key: str) -> None:
        typed = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key], **typed)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def picture(self, path: pathlib.Path) -> None:
        """A picture of the whole page, however long."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 8000), "scale": 1}
        data = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        with contextlib.suppress(OSError):  # its helpers may still write there for a moment
            self._folder.cleanup()


def place_descriptors(read: int, write: int) -> None:
    """Where the browser looks for them."""
    high_read, high_write = os.dup(read), os.dup(write)
    os.dup2(high_read, 3)
    os.dup2(high_write, 4)
