"""Stands in for the AToMesh router: refuses to start before its workers answer, and passes requests on to one."""

import argparse
import json
import sys
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("command", choices=["launch"])
    parser.add_argument("--pd-disaggregation", action="store_true")
    parser.add_argument("--prefill", action="append", default=[])
    parser.add_argument("--decode", action="append", default=[])
    parser.add_argument("--worker-urls", nargs="+", default=[])
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--backend", choices=["atom"], required=True)
    return parser.parse_known_args()[0]


def ask(url: str, body: bytes | None = None) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=body), timeout=5) as answer:  # noqa: S310
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Handler(BaseHTTPRequestHandler):
    options: ClassVar[argparse.Namespace]
    workers: ClassVar[list[str]]

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path == "/workers":
            stats = {
                "prefill_count": len(self.options.prefill),
                "decode_count": len(self.options.decode),
                "regular_count": len(self.options.worker_urls),
            }
            self.answer(200, json.dumps({"stats": stats, "workers": []}).encode())
        else:
            self.answer(*ask(self.workers[-1] + self.path))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(*ask(self.workers[-1] + self.path, body))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        pass


def main() -> None:
    options = arguments()
    say("argv", json.dumps(sys.argv[1:]), "at", time.time())
    Handler.options = options
    Handler.workers = [*options.prefill, *options.decode, *options.worker_urls]
    for worker in Handler.workers:
        if ask(f"{worker}/health")[0] != 200:
            sys.exit(f"{worker} is not healthy, and the router was started all the same")
    ThreadingHTTPServer((options.host, options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
