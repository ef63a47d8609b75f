"""Patch files that are taken, and each kind that is refused before git sees it."""

from pathlib import Path

import pytest

from runners.patchfile import parse, read

PLAIN = """\
diff --git a/f.txt b/f.txt
index 8a1218a1024a212bb3db30becd860315f9f3ac52..4c8d4b0b2f9a4f2dfd4a2b4c2b0b6a1d9b1f5d2e 100644
--- a/f.txt
+++ b/f.txt
@@ -1,3 +1,3 @@
 a
-b
+B
 c
"""
CREATED = """\
diff --git a/new.txt b/new.txt
new file mode 100755
index 0000000000000000000000000000000000000000..3e757656cf36eca53338e520d134963a44f793f8
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+new
"""
DELETED = """\
diff --git a/old.txt b/old.txt
deleted file mode 100644
index 3367afdbbf91e638efe983616377c60477cc6612..0000000000000000000000000000000000000000
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-old
"""
MAIL = f"""\
From 1234567890123456789012345678901234567890 Mon Sep 17 00:00:00 2001
From: A Person <a@example.invalid>
Subject: [PATCH] Fix it
---
 f.txt | 2 +-
 1 file changed, 1 insertion(+), 1 deletion(-)

{PLAIN}-- \n2.39.5

"""
BARE = "--- a/f.txt\n+++ b/f.txt\n@@ -2 +2 @@\n-b\n+B\n"
TRAP = "--- a/f.txt\n+++ b/f.txt\n@@ -1,2 +1,2 @@\n x\n--- a/g.txt\n+++ b/g.txt\n"  # a hunk about lines of dashes

TAKEN = {
    "git diff": (PLAIN, ["f.txt"], []),
    "a mail": (MAIL, ["f.txt"], []),
    "GNU diff": ("--- a/f.txt\t2026-01-01\n+++ b/f.txt\t2026-01-02\n@@ -1 +1,2 @@\n a\n+b\n", ["f.txt"], []),
    "three kinds": (PLAIN + CREATED + DELETED, ["f.txt", "new.txt", "old.txt"], []),
    "text before": ("Why this is.\n\n" + PLAIN, ["f.txt"], []),
    "a name with spaces": (PLAIN.replace("f.txt", "a file.txt"), ["a file.txt"], []),
    "a quoted name": (PLAIN.replace("a/f.txt", '"a/\\303\\244"').replace("b/f.txt", '"b/\\303\\244"'), ["ä"], []),
    "an empty new file": ("diff --git a/x y b/x y\nnew file mode 100644\nindex 0000000..e69de29\n", ["x y"], []),
    "no line end at the end": (PLAIN + "\\ No newline at end of file\n", ["f.txt"], []),
    "no context": (BARE, ["f.txt"], [3]),
    "lines that look like headers": (TRAP, ["f.txt"], []),
}

REFUSED = {
    "CR": (PLAIN.replace("\n", "\r\n"), ["patch-line-ends"]),
    "one CR": (PLAIN.replace("+B", "+B\r"), ["patch-line-ends"]),
    "nothing": ("", ["patch-empty"]),
    "prose": ("There was a patch here once.\n", ["patch-empty"]),
    "no hunk": (PLAIN[: PLAIN.index("@@")], ["patch-empty"]),
    "binary": (
        "diff --git a/x.bin b/x.bin\nindex 1234567..89abcde 100644\nGIT binary patch\nliteral 3\nKcmZ\n",
        ["patch-binary"],
    ),
    "binary without data": (
        "diff --git a/x b/x\nindex 1234567..89abcde 100644\nBinary files a/x and b/x differ\n",
        ["patch-binary"],
    ),
    "rename": (
        "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n",
        ["patch-rename"],
    ),
    "copy": ("diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n", ["patch-rename"]),
    "rename of GNU diff": ("--- a/x\n+++ b/y\n@@ -1 +1,2 @@\n a\n+b\n", ["patch-rename"]),
    "mode": ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", ["patch-mode", "patch-mode"]),
    "symbolic link": (CREATED.replace("100755", "120000"), ["patch-mode"]),
    "submodule": (CREATED.replace("100755", "160000"), ["patch-mode"]),
    "above the tree": (PLAIN.replace("/f.txt", "/../f.txt"), ["patch-path"]),
    "inside out": (PLAIN.replace("/f.txt", "/a/../../f.txt"), ["patch-path"]),
    "absolute": (PLAIN.replace("a/f.txt", "/etc/f.txt").replace("b/f.txt", "/etc/f.txt"), ["patch-path"]),
    "no first part": (PLAIN.replace("a/f.txt", "f.txt").replace("b/f.txt", "f.txt"), ["patch-path"]),
    "git's own": (PLAIN.replace("/f.txt", "/.git/config"), ["patch-path"]),
    "git's own in another case": (PLAIN.replace("/f.txt", "/sub/.GIT/hooks/x"), ["patch-path"]),
    "backslashes": (PLAIN.replace("/f.txt", "/..\\f.txt"), ["patch-path"]),
    "cut": (PLAIN[:-7], ["patch-hunk"]),
    "edited by hand": (PLAIN.replace("-1,3 +1,3", "-1,1 +1,3"), ["patch-hunk"]),
    "twice": (PLAIN + PLAIN, ["patch-twice"]),
    "several faults": (
        CREATED.replace("100755", "120000") + PLAIN.replace("/f.txt", "/.git/config"),
        ["patch-mode", "patch-path"],
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name: str) -> None:
    text, paths, bare = TAKEN[name]
    patch, findings = parse(Path("1-x.patch"), text.encode())
    assert findings == []
    assert patch is not None
    assert list(patch.paths) == paths
    assert [line for change in patch.changes for line in change.bare_hunks] == bare
    assert patch.preamble + patch.data[len(patch.preamble) :] == text.encode()


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, rules = REFUSED[name]
    patch, findings = parse(Path("1-x.patch"), text.encode())
    assert patch is None
    assert [finding.rule for finding in findings] == rules
    assert all(finding.fix and finding.span and finding.span.file == "1-x.patch" for finding in findings)


def test_a_cr_is_named_with_its_line_and_file() -> None:
    _, findings = parse(Path("crlf.patch"), PLAIN.replace("+B", "+B\r").encode())
    assert str(findings[0]).startswith("crlf.patch:8: patch-line-ends: CR line ends in crlf.patch")


def test_kinds_and_blob_ids() -> None:
    patch, _ = parse(Path("1-x.patch"), (PLAIN + CREATED + DELETED).encode())
    assert patch is not None
    changed, created, deleted = patch.changes
    assert (changed.created, changed.deleted) == (False, False)
    assert changed.pre.startswith("8a1218a1")
    assert created.created
    assert set(created.pre) == {"0"}
    assert deleted.deleted
    assert (created.bare_hunks, deleted.bare_hunks) == ([], []), "a whole file needs no context"


def test_a_link_is_no_patch(tmp_path: Path) -> None:
    (tmp_path / "real").write_text(PLAIN)
    (tmp_path / "1-x.patch").symlink_to("real")
    patch, findings = read(tmp_path / "1-x.patch")
    assert patch is None
    assert [finding.rule for finding in findings] == ["patch-file"]
