"""A reader who is slow, stops, or hangs up."""

import io
import os

from runners.output import Output


def test_nobody_reads_and_nobody_waits() -> None:
    reading, writing = os.pipe()
    text = "".join(f"{number}\n" for number in range(100_000))
    with os.fdopen(reading) as reader, os.fdopen(writing, "w") as stream:
        output = Output(stream)
        output.write(text)
        got = ""
        assert output.blocked == writing
        while output.blocked:
            got += os.read(reading, 1 << 16).decode()
            output.flush()
        os.set_blocking(reading, False)
        got += reader.read()
        assert got == text


def test_a_reader_who_hangs_up_ends_the_writing_and_nothing_else() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        output = Output(stream)
        output.write("x" * 200_000)
        os.close(reading)
        output.flush()
        assert output.blocked is None
        output.write("more")
        stream.write("and what others write at exit")


def test_a_stream_without_a_descriptor_and_a_closed_one() -> None:
    stream = io.StringIO()
    Output(stream).write("é")
    assert stream.getvalue() == "é"
    reading, writing = os.pipe()
    os.close(reading)
    closed = os.fdopen(writing, "w")
    output = Output(closed)
    closed.close()
    output.write("x")
    assert output.blocked is None
