"""A server on loopback that speaks as much of GitHub's REST API as the product asks, faults included.

Shapes, page sizes, ``Link`` headers and the texts of errors are those of api.github.com. What a test does not plant is
answered from the state of `Site`. Every request is written down.
"""

from __future__ import annotations

import io
import json
import re
import threading
import zipfile
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REPOSITORY: Final = "org/bench"
NOW: Final = 1_795_000_000
"""The server's clock, seconds since 1970."""
MAX_FILES: Final = 3000
MAX_COMMITS: Final = 250
INTEGRATION: Final = "Resource not accessible by integration"
SECONDARY: Final = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. If you reach out to "
    "GitHub Support for help, please include the request ID."
)
PRIMARY: Final = "API rate limit exceeded for installation ID 1234."
NOT_FOUND: Final = "Not Found"


class Reply(NamedTuple):
    """An answer that a test plants.

    ``hang`` seconds pass before it, ``stall`` in its middle; ``cut`` closes the connection without one.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = {}
    hang: float = 0.0
    stall: float = 0.0
    cut: bool = False


def error(status: int, message: str, **headers: str) -> Reply:
    body = {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
    return Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def user(login: str) -> dict[str, Any]:
    kind = "Bot" if login.endswith("[bot]") else "User"
    return {"login": login, "id": sum(map(ord, login)), "type": kind, "site_admin": False}


@dataclass
class Site:
    """What the server knows of one pull request, number 77, and of the repository's runs."""

    me: str = "github-actions[bot]"
    head: str = "c" * 40
    base: str = "b" * 40
    head_repository: str | None = REPOSITORY
    author: str | None = "ada"
    draft: bool = False
    state: str = "open"
    labels: list[str] = field(default_factory=list)
    events: list[tuple[str, str | None, str]] = field(default_factory=list)
    files: list[str | tuple[str, str]] = field(default_factory=list)
    changed_files: int | None = None
    commits: list[str] = field(default_factory=lambda: ["c" * 40])
    people: dict[str, tuple[str, str]] = field(default_factory=dict)
    comments: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    artifacts: dict[int, list[tuple[str, bytes]]] = field(default_factory=dict)
    expired: set[str] = field(default_factory=set)
    sizes: dict[str, int] = field(default_factory=dict)
    planted: list[tuple[str, Reply | Callable[[Site], Reply | None]]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)
    store_tokens: set[str | None] = field(default_factory=set)
    next_id: int = 9000
    event_times: tuple[int, ...] = ()
    port: int = 0
    prefix: str = ""

    def plant(self, pattern: str, *replies: Reply | Callable[[Site], Reply | None]) -> None:
        """The next requests that a pattern finds in ``VERB /path?query`` get these answers, one each."""
        self.planted += ((pattern, reply) for reply in replies)

    def comment(self, author: str | None, body: str, association: str = "MEMBER") -> int:
        self.next_id += 1
        self.comments.append({
            "id": self.next_id,
            "user": None if author is None else user(author),
            "body": body,
            "author_association": association,
            "created_at": "2026-11-30T12:00:00Z",
            "updated_at": "2026-11-30T12:00:00Z",
            "html_url": f"https://github.com/{REPOSITORY}/pull/77#issuecomment-{self.next_id}",
        })  # fmt: skip
        return self.next_id

    def add_run(self, number: int, sha: str, conclusion: str | None = "success", **changed: Any) -> None:
        self.runs.append({
            "id": number,
            "name": "sweep",
            "path": ".github/workflows/run-sweep.yml",
            "event": "pull_request",
            "head_sha": sha,
            "head_branch": "feature",
            "head_repository": {"full_name": REPOSITORY},
            "run_attempt": 1,
            "status": "completed" if conclusion else "in_progress",
            "conclusion": conclusion,
            "html_url": f"https://github.com/{REPOSITORY}/actions/runs/{number}",
            "pull_requests": [],
            **changed,
        })  # fmt: skip

    def add_artifact(self, run: int, name: str, **files: str) -> None:
        self.artifacts.setdefault(run, []).append((name, zipped(files)))


def zipped(files: Mapping[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            # Without a date of its own a member has the clock's, and equal files differ every two seconds.
            member = zipfile.ZipInfo(name, date_time=(2026, 1, 1, 0, 0, 0))
            archive.writestr(member, text, zipfile.ZIP_DEFLATED)
    return data.getvalue()


class Server:
    """A context manager; ``url`` is what ``GITHUB_API_URL`` would be."""

    def __init__(self, site: Site) -> None:
        handler = type("Bound", (Handler,), {"site": site})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        site.port = self.http.server_address[1]
        self.url = f"http://127.0.0.1:{site.port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


class Handler(BaseHTTPRequestHandler):
    """One connection. HTTP/1.0: each request has its own."""

    site: ClassVar[Site]
    lock: ClassVar[threading.Lock] = threading.Lock()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        pass

    def do_GET(self) -> None:
        self.serve()

    def do_POST(self) -> None:
        self.serve()

    def do_PATCH(self) -> None:
        self.serve()

    def do_DELETE(self) -> None:
        self.serve()

    def serve(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        content = json.loads(self.rfile.read(size)) if size else None
        with self.lock:
            reply = self.reply(content)
        if reply.hang:
            threading.Event().wait(reply.hang)
        if reply.cut:
            return
        try:
            self.send(reply)
        except BrokenPipeError:
            # The client stopped waiting, which is what a test that hangs is about.
            self.close_connection = True

    def send(self, reply: Reply) -> None:
        raw = isinstance(reply.body, bytes)
        body = reply.body if raw else b"" if reply.body is None else json.dumps(reply.body).encode()
        self.send_response_only(reply.status)
        headers = {"Content-Type": "application/zip" if raw else "application/json; charset=utf-8"}
        headers |= {"Date": formatdate(NOW, usegmt=True), "x-ratelimit-limit": "5000", "x-ratelimit-remaining": "4999"}
        for name, value in {**headers, "Content-Length": str(len(body)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        half = len(body) // 2
        self.wfile.write(body[:half])
        if reply.stall:
            self.wfile.flush()
            threading.Event().wait(reply.stall)
        self.wfile.write(body[half:])

    def reply(self, content: Any) -> Reply:
        site, line = self.site, f"{self.command} {self.path}"
        path = urlsplit(self.path).path
        if path.startswith("/store/"):
            site.store_tokens.add(self.headers.get("Authorization"))
        else:
            site.tokens.add(self.headers.get("Authorization"))
        site.requests.append(line)
        for place, (pattern, planted) in enumerate(site.planted):
            if re.search(pattern, line):
                del site.planted[place]
                found = planted if isinstance(planted, Reply) else planted(site)
                if found is not None:
                    return found
                break
        if path.startswith("/store/"):
            _, _, run, name = path.split("/", 3)
            return Reply(200, dict(site.artifacts[int(run)])[unquote(name)])
        prefix = f"{site.prefix}/repos/{REPOSITORY}/"
        if not path.startswith(prefix):
            return error(404, NOT_FOUND)
        return self.answer(path.removeprefix(prefix), content)

    def answer(self, path: str, content: Any) -> Reply:
        match self.command, path.split("/"):
            case "GET", ["pulls", "77"]:
                return Reply(200, pull_request(self.site))
            case "GET", [_, "77", what]:
                return self.page(members(self.site, what))
            case "GET", ["collaborators", login, "permission"]:
                return permission(self.site, unquote(login))
            case "GET", ["actions", *rest]:
                return self.actions(rest)
            case "POST", ["issues", "77", "comments"]:
                return self.written(self.site.comment(self.site.me, content["body"], "NONE"), 201, content)
            case "PATCH", ["issues", "comments", number]:
                return self.written(int(number), 200, content)
            case "DELETE", ["issues", "comments", number]:
                return deleted(self.site, int(number))
            case _:
                return error(404, NOT_FOUND)

    def actions(self, path: list[str]) -> Reply:
        site = self.site
        match path:
            case ["runs", number]:
                found = [run for run in site.runs if run["id"] == int(number)]
                return Reply(200, found[0]) if found else error(404, NOT_FOUND)
            case ["workflows", name, "runs"]:
                query = self.query()
                [event], [branch] = query["event"], query["branch"]
                runs = [run for run in site.runs if run["event"] == event and run["head_branch"] == branch]
                found = [run for run in runs if run["path"].endswith(f"/{name}")]
                return self.page(sorted(found, key=lambda run: -run["id"]), "workflow_runs")
            case ["runs", number, "artifacts"]:
                kept = site.artifacts.get(int(number), [])
                listed = [artifact(site, int(number), place, one) for place, one in enumerate(kept)]
                return self.page(listed[::-1], "artifacts")
            case ["artifacts", number, "zip"]:
                run, place = divmod(int(number), 1000)
                name, _ = site.artifacts[run][place]
                if name in site.expired:
                    return error(410, "Artifact has expired")
                # Another name of the same host: credentials must not follow.
                return Reply(302, None, {"Location": f"http://localhost:{self.port}/store/{run}/{name}"})
            case _:
                return error(404, NOT_FOUND)

    @property
    def port(self) -> int:
        return int(self.connection.getsockname()[1])

    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.path).query)

    def page(self, members: list[Any], key: str = "") -> Reply:
        """One page, with the links to the others; 30 members when nothing else is asked, 100 at most."""
        query = self.query()
        size = min(int(query.get("per_page", ["30"])[0]), 100)
        number = int(query.get("page", ["1"])[0])
        shown = members[(number - 1) * size : number * size]
        links = {}
        if number * size < len(members):
            kept = "&".join(f"{name}={one[0]}" for name, one in query.items() if name != "page")
            base = f"http://127.0.0.1:{self.port}{urlsplit(self.path).path}?{kept}"
            last = -(-len(members) // size)
            links = {"Link": f'<{base}&page={number + 1}>; rel="next", <{base}&page={last}>; rel="last"'}
        return Reply(200, {"total_count": len(members), key: shown} if key else shown, links)

    def written(self, number: int, status: int, content: Any) -> Reply:
        if len(content["body"]) > 65536:
            self.site.comments[:] = [one for one in self.site.comments if status == 200 or one["id"] != number]
            return error(422, "Validation Failed: body is too long (maximum is 65536 characters)")
        for one in self.site.comments:
            if one["id"] == number:
                one["body"] = content["body"]
                return Reply(status, one)
        return error(404, NOT_FOUND)


def members(site: Site, what: str) -> list[Any]:
    match what:
        case "files":
            return [changed_file(one) for one in site.files][:MAX_FILES]
        case "commits":
            return [{"sha": sha, "commit": {"message": "m"}} for sha in site.commits][:MAX_COMMITS]
        case "labels":
            return [{"id": place, "name": name, "color": "ededed"} for place, name in enumerate(site.labels)]
        case "events":
            times = site.event_times or range(len(site.events))
            return [issue_event(time, *one) for time, one in zip(times, site.events, strict=True)]
        case _:
            return site.comments


def deleted(site: Site, number: int) -> Reply:
    kept = [one for one in site.comments if one["id"] != number]
    gone = len(kept) < len(site.comments)
    site.comments[:] = kept
    return Reply(204) if gone else error(404, NOT_FOUND)


def pull_request(site: Site) -> dict[str, Any]:
    head_repository = None if site.head_repository is None else {"full_name": site.head_repository}
    return {
        "number": 77,
        "state": site.state,
        "draft": site.draft,
        "title": "A change",
        "user": None if site.author is None else user(site.author),
        "labels": [{"name": name} for name in site.labels],
        "head": {"ref": "feature", "sha": site.head, "repo": head_repository},
        "base": {"ref": "main", "sha": site.base, "repo": {"full_name": REPOSITORY}},
        "changed_files": len(site.files) if site.changed_files is None else site.changed_files,
        "commits": len(site.commits),
    }


def changed_file(one: str | tuple[str, str]) -> dict[str, Any]:
    if isinstance(one, str):
        return {"sha": "0" * 40, "filename": one, "status": "modified", "additions": 1, "deletions": 0, "changes": 1}
    return {"sha": "0" * 40, "filename": one[1], "previous_filename": one[0], "status": "renamed", "changes": 0}


def issue_event(number: int, event: str, actor: str | None, label: str) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": number, "event": event, "actor": None if actor is None else user(actor)}
    if event in ("labeled", "unlabeled"):
        shown["label"] = {"name": label, "color": "ededed"}
    hours, minutes = divmod(number, 60)
    return {**shown, "created_at": f"2026-11-30T{10 + hours:02}:{minutes:02}:00Z"}


def permission(site: Site, login: str) -> Reply:
    if login not in site.people:
        return error(404, f"{login} is not a user")
    coarse, role = site.people[login]
    return Reply(200, {"permission": coarse, "role_name": role, "user": user(login)})


def artifact(site: Site, run: int, place: int, one: tuple[str, bytes]) -> dict[str, Any]:
    name, data = one
    return {
        "id": run * 1000 + place,
        "name": name,
        "size_in_bytes": site.sizes.get(name, len(data)),
        "expired": name in site.expired,
    }
