"""Stand-ins for the two things that followers see: time, and the programs of Slurm."""

from collections.abc import Callable, Mapping, Sequence

from runners.process import CallError, Done, InterruptedCallError

Reply = Done | Exception


class FakeClock:
    """Time that passes when somebody sleeps, and signals that come at a time."""

    def __init__(self, signals: Mapping[float, int] | None = None) -> None:
        self.time = 0.0
        self.sleeps: list[float] = []
        self.received: int | None = None
        self._coming = sorted((signals or {}).items())

    def fileno(self) -> int | None:
        return None

    def acknowledge(self) -> None:
        """Nothing to do: here a signal interrupts only the sleep in which it comes."""

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float, writable: int | None = None) -> None:
        self.sleeps.append(seconds)
        assert len(self.sleeps) < 20_000, "it waits for ever"
        end = self.time + seconds
        while self._coming and self._coming[0][0] <= end:
            when, number = self._coming.pop(0)
            if self.received is None:
                self.received = number
                end = max(self.time, when)
        self.time = end


class Programs:
    """Takes the place of `runners.process.run`, with replies by program; `sacct_c` stands for ``sacct -c``.

    Each list is given out in its order, the last reply for ever.
    """

    def __init__(self, clock: FakeClock | None = None, **replies: Sequence[Reply | str]) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.envs: list[Mapping[str, str]] = []
        self.times: list[float] = []
        self._clock = clock
        self._replies: dict[str, list[Reply | str]] = {}
        self.on_call: Callable[[str], None] = lambda _: None
        self.answer(**replies)

    def answer(self, **replies: Sequence[Reply | str]) -> None:
        """Other replies from here on."""
        self._replies |= {program: list(texts) for program, texts in replies.items()}

    def __call__(self, argv: Sequence[str], *, timeout: float, env: Mapping[str, str], interrupt: int | None) -> Done:
        self.calls.append(tuple(argv))
        self.envs.append(env)
        self.times.append(self._clock.now() if self._clock else 0.0)
        self.on_call(argv[0])
        name = "sacct_c" if tuple(argv[:2]) == ("sacct", "-c") and "sacct_c" in self._replies else argv[0]
        replies = self._replies.get(name, [""])
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, Exception):
            raise reply
        return said(reply) if isinstance(reply, str) else reply

    def of(self, program: str) -> list[tuple[str, ...]]:
        return [call for call in self.calls if call[0] == program]


def said(stdout: str) -> Done:
    return Done(status=0, stdout=stdout, stderr="")


def failed(stderr: str, status: int = 1) -> Done:
    return Done(status=status, stdout="", stderr=stderr)


# As Slurm 22.05.8 says it.
NO_CONTROLLER = failed("slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")
NO_SUCH_JOB = failed("slurm_load_jobs error: Invalid job id specified\n")
NO_ACCOUNTING = failed("Slurm accounting storage is disabled\n")
TIMED_OUT = CallError(("squeue",), "has not ended after 30 s")
INTERRUPTED = InterruptedCallError()


def scontrol(job: int, state: str, **fields: object) -> str:
    """A record in the form of ``scontrol show job``."""
    known = {"Requeue": 0, "Restarts": 0, "ExitCode": "0:0", "DerivedExitCode": "0:0", **fields}
    lines = [f"   {name}={value}" for name, value in known.items()]
    return "\n".join([f"JobId={job} JobName=x", f"   JobState={state} Reason=None", *lines]) + "\n"
