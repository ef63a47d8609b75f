"""Small real git repositories for tests, and folders of patches made from them."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.invalid",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.invalid",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


@dataclass(frozen=True, slots=True)
class Repo:
    """A git repository of a test."""

    path: Path

    def git(self, *arguments: str, data: bytes | None = None) -> str:
        done = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *arguments],
            cwd=self.path,
            env=os.environ | IDENTITY,
            input=data,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode()

    def write(self, files: Mapping[str, str | None]) -> None:
        """Write files; None deletes one."""
        for name, text in files.items():
            file = self.path / name
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode())

    def commit(self, files: Mapping[str, str | None], message: str = "change") -> str:
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD").strip()

    def diff(self, files: Mapping[str, str | None], *options: str) -> bytes:
        """The patch that writing files makes; the repository stays as it is."""
        self.write(files)
        self.git("add", "--all", "--intent-to-add")
        text = self.git("diff", "--full-index", *options)
        self.git("reset", "--quiet", "--hard")
        self.git("clean", "--quiet", "-fd")
        return text.encode()

    def state(self) -> tuple[str, str, dict[str, bytes]]:
        """HEAD, status, and every file outside .git: two equal states are the same tree."""
        files = {
            str(file.relative_to(self.path)): file.read_bytes()
            for file in sorted(self.path.rglob("*"))
            if file.is_file() and ".git" not in file.relative_to(self.path).parts
        }
        return self.head(), self.git("status", "--porcelain", "--untracked-files=all"), files


def make_repo(path: Path, files: Mapping[str, str | None]) -> Repo:
    """A new repository with one commit."""
    path.mkdir(parents=True)
    repo = Repo(path)
    repo.git("init", "--quiet", "--initial-branch=main")
    repo.commit(files, "first")
    return repo


def make_folder(path: Path, patches: Mapping[str, bytes]) -> Path:
    """A folder of patches without a record."""
    path.mkdir(parents=True)
    for name, data in patches.items():
        (path / name).write_bytes(data)
    return path


def make_recorded(path: Path, repo: Repo, edits: Mapping[str, Mapping[str, str | None]]) -> Path:
    """A folder of patches with ``series.yaml`` and a table: each edit on top of the ones before it."""
    from runners.refresh import refresh

    path.mkdir(parents=True)
    rows = "".join(f"| `{name}` | x |\n" for name in edits)
    (path / "README.md").write_text(f"| Patch | Why |\n|---|---|\n{rows}")
    for name, files in edits.items():
        repo.write(files)
        refresh(path, repo.path, name, upstream="https://example.invalid/1", why="because")
    repo.git("reset", "--quiet", "--hard")
    repo.git("clean", "--quiet", "-fd")
    return path
