"""A web server on this machine that answers as it is told."""

import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Cut(NamedTuple):
    """A file of which the connection carries the first bytes only."""

    data: bytes
    after: int


class Slow(NamedTuple):
    """A file that comes after some seconds of silence."""

    data: bytes
    seconds: float


class Server:
    """Files by path. A list is answered item by item, its last one for ever; an int is an error."""

    def __init__(self):
        self.files = {}
        self.asked = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _next(self, path):
        self.asked.append(path)
        answers = self.files.get(path, 404)
        if not isinstance(answers, list):
            return answers
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def _handler(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                answer = server._next(self.path)
                if isinstance(answer, int):
                    self.send_error(answer)
                    return
                if isinstance(answer, Slow):
                    time.sleep(answer.seconds)
                data = answer if isinstance(answer, bytes) else answer.data
                with suppress(ConnectionError):  # who asked may have given up
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data[: answer.after] if isinstance(answer, Cut) else data)

            def log_message(self, *_):
                pass

        return Handler
