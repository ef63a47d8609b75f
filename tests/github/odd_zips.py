"""Artifacts that are no whole zip files, or that would fill any disk."""

from __future__ import annotations

from io import BytesIO
from zipfile import ZipFile

from tests.github.server import zipped


def broken(method: int, folder: str) -> bytes:
    """A zip file with a file that cannot be unpacked, in each way of packing."""
    data = BytesIO()
    with ZipFile(data, "w", method) as archive:
        archive.writestr(f"{folder}/r.json", "x" * 9000)
        archive.writestr(f"{folder}/receipt.json", "{}")
    found = bytearray(data.getvalue())
    begin = 30 + len(f"{folder}/r.json")
    found[begin + 4 : begin + 20] = b"\xff" * 16
    return bytes(found)


def swollen(folder: str) -> bytes:
    """Three files of 4 GB each, as the table of contents has it."""
    data = bytearray(zipped({f"{folder}/{number}": "x" for number in range(2)} | {f"{folder}/receipt.json": "{}"}))
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 24 : at + 28] = (0xFFFFFFF0).to_bytes(4, "little")
        at = data.find(b"PK\x01\x02", at + 4)
    return bytes(data)
