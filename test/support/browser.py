"""A headless Chromium of the distribution, driven through its debugging pipe.

No Python package is needed for it.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from . import wait_until

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable')


def find_browser() -> str | None:
    """Return the path of a Chromium, None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a headless Chromium (Chrome DevTools Protocol over a pipe).

    Attributes
    ----------
    requests : list of str
        URLs that the page asked for.
    complaints : list of str
        What it wrote to the console as errors or warnings, and exceptions that nobody caught.
    """

    def __init__(self) -> None:
        path = find_browser()
        assert path is not None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._profile = tempfile.TemporaryDirectory(
            prefix='dryden_wind_ros-chromium-', ignore_cleanup_errors=True)
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()

        def connect() -> None:
            # The browser reads commands from 3 and writes answers to 4. Moved out of the way
            # first, in case one of ours has such a number.
            source, sink = os.dup(to_read), os.dup(to_write)
            os.dup2(source, 3)
            os.dup2(sink, 4)

        self._process = subprocess.Popen(
            [path, '--headless=new', '--remote-debugging-pipe', '--no-sandbox', '--disable-gpu',
             '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking',
             '--disable-component-update', '--disable-sync', '--hide-scrollbars',
             f'--user-data-dir={self._profile.name}', 'about:blank'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=connect)
        os.close(to_read)
        os.close(to_write)
        self._answers: dict[int, Any] = {}
        self._news = threading.Condition()
        self._number = 0
        self._closed = self._loaded = False
        threading.Thread(target=self._listen, daemon=True).start()
        target = self._send('Target.createTarget', {'url': 'about:blank'}, None)['targetId']
        self._session = self._send(
            'Target.attachToTarget', {'targetId': target, 'flatten': True}, None)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.send(f'{domain}.enable')

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        self._profile.cleanup()

    def send(self, method: str, parameters: dict[str, Any] | None = None) -> Any:
        """Send a command to the page and return its answer."""
        return self._send(method, parameters or {}, self._session)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression (a promise is waited for)."""
        answer = self.send('Runtime.evaluate', {
            'expression': expression, 'returnByValue': True, 'awaitPromise': True})
        assert 'exceptionDetails' not in answer, answer['exceptionDetails']
        return answer['result'].get('value')

    def show(self, width: int, height: int = 900, dark: bool = False) -> None:
        """Set the size of the window and what the user prefers."""
        self.send('Emulation.setDeviceMetricsOverride', {
            'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': width < 600})
        self.send('Emulation.setEmulatedMedia', {'features': [
            {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'},
            {'name': 'prefers-reduced-motion', 'value': 'reduce'}]})

    def open(self, path: Path) -> None:
        """Load a file, and wait until it is loaded."""
        self.requests.clear()
        self.complaints.clear()
        self._loaded = False
        self.send('Page.navigate', {'url': path.resolve().as_uri()})
        wait_until(lambda: self._loaded, 60.0, f'the load event of {path.name}')

    def screenshot(self, path: Path, whole: bool = True) -> None:
        """Save a picture of the page (`whole`: beyond the window)."""
        clip = {}
        if whole:
            size = self.send('Page.getLayoutMetrics')['cssContentSize']
            clip = {'captureBeyondViewport': True, 'clip': {
                'x': 0, 'y': 0, 'width': size['width'], 'height': size['height'], 'scale': 1}}
        data = self.send('Page.captureScreenshot', {'format': 'png', **clip})['data']
        path.write_bytes(base64.b64decode(data))

    def _send(self, method: str, parameters: dict[str, Any], session: str | None) -> Any:
        with self._news:
            self._number += 1
            number = self._number
        message: dict[str, Any] = {'id': number, 'method': method, 'params': parameters}
        if session is not None:
            message['sessionId'] = session
        data = json.dumps(message).encode() + b'\0'
        while data:
            data = data[os.write(self._out, data):]
        deadline = time.monotonic() + 60.0
        with self._news:
            while number not in self._answers:
                left = deadline - time.monotonic()
                assert not self._closed, f'the browser ended before it answered {method}'
                assert left > 0.0, f'no answer of the browser to {method}'
                self._news.wait(left)
            answer = self._answers.pop(number)
        assert 'error' not in answer, f'{method}: {answer["error"]}'
        return answer['result']

    def _listen(self) -> None:
        pending = b''
        while True:
            block = os.read(self._in, 1 << 16)
            if not block:
                break
            *messages, pending = (pending + block).split(b'\0')
            for text in messages:
                self._take(json.loads(text))
        os.close(self._in)
        with self._news:
            self._closed = True
            self._news.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        if 'id' in message:
            with self._news:
                self._answers[message['id']] = message
                self._news.notify_all()
            return
        method, values = message['method'], message.get('params', {})
        if method == 'Page.loadEventFired':
            self._loaded = True
        elif method == 'Network.requestWillBeSent':
            self.requests.append(values['request']['url'])
        elif method == 'Runtime.consoleAPICalled' and values['type'] in ('error', 'warning'):
            self.complaints.append(' '.join(
                str(one.get('value', one.get('description'))) for one in values['args']))
        elif method == 'Runtime.exceptionThrown':
            self.complaints.append(json.dumps(values['exceptionDetails'])[:500])
        elif method == 'Log.entryAdded' and values['entry']['level'] in ('error', 'warning'):
            self.complaints.append(values['entry']['text'])
