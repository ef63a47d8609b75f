"""Stands in for the AToMesh router: refuses to start before its workers answer, and passes requests on to one."""

import argparse
import json
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


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


OPTIONS = arguments()


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
    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path == "/workers":
            stats = {
                "prefill_count": len(OPTIONS.prefill),
                "decode_count": len(OPTIONS.decode),
                "regular_count": len(OPTIONS.worker_urls),
            }
            self.answer(200, json.dumps({"stats": stats, "workers": []}).encode())
        else:
            self.answer(*ask(WORKERS[-1] + self.path))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(*ask(WORKERS[-1] + self.path, body))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        pass


WORKERS = [*OPTIONS.prefill, *OPTIONS.decode, *OPTIONS.worker_urls]

if __name__ == "__main__":
    say("argv", json.dumps(sys.argv[1:]), "at", time.time())
    for worker in WORKERS:
        if ask(f"{worker}/health")[0] != 200:
            sys.exit(f"{worker} is not healthy, and the router was started all the same")
    ThreadingHTTPServer((OPTIONS.host, OPTIONS.port), Handler).serve_forever()
