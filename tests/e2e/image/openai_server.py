"""Stands in for ATOM's server: takes the argv that we render, and answers what router, srtctl and client ask."""

import argparse
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar


def arguments() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--server-port", type=int, required=True)
    parser.add_argument("-tp", type=int, required=True)
    parser.add_argument("--kv-transfer-config", type=json.loads, default={})
    parser.add_argument("--served-model-name")
    parser.add_argument("--spec-decode-acceptance-length", type=float)
    return parser.parse_known_args()


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Handler(BaseHTTPRequestHandler):
    name: ClassVar[str]
    transfer: ClassVar[dict[str, Any]]
    length: ClassVar[float]
    answers: ClassVar[dict[str, Any]]

    def answer(self, status: int, body: str, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self.answer(200, f"atom:mtp_average_tokens_per_forward {self.length}\n", "text/plain")
        elif self.path in self.answers:
            self.answer(200, json.dumps(self.answers[self.path]))
        else:
            self.answer(404, "{}")

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if request.get("model") != self.name:
            self.answer(503, json.dumps({"error": f"no model {request.get('model')}"}))
        else:
            said = f"{os.uname().nodename} {self.transfer.get('kv_role')}"
            self.answer(200, json.dumps({"model": self.name, "choices": [{"text": said}]}))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        pass


def main() -> None:
    options, rest = arguments()
    say("argv", json.dumps(sys.argv[1:]))
    say("ATOM_HOST_IP", os.environ.get("ATOM_HOST_IP"), "cwd", Path.cwd())
    config = options.kv_transfer_config
    # A producer behind `multi` is the first of its connectors.
    transfer = config.get("connectors", [config])[0]
    Handler.name = options.served_model_name or options.model
    Handler.transfer = transfer
    Handler.length = options.spec_decode_acceptance_length or 1.0
    Handler.answers = {
        "/health": {},
        "/v1/models": {"object": "list", "data": [{"id": Handler.name, "object": "model"}]},
        "/server_info": {"dp_size": 8 if "--enable-dp-attention" in rest else 1, "tp_size": options.tp},
        "/kv_transfer_info": {"kv_role": transfer.get("kv_role"), "handshake_port": transfer.get("handshake_port")},
    }
    ThreadingHTTPServer((options.host, options.server_port), Handler).serve_forever()


if __name__ == "__main__":
    main()
