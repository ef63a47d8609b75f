"""Why a job waits: Slurm's reasons that do not pass by themselves, in words, each with what to do."""

from __future__ import annotations

from typing import Final

__all__ = ["explain"]

# Beginning of the reason as squeue writes it -> (what it means, what to do). The first match counts.
_STUCK: Final = (
    (
        "DependencyNeverSatisfied",
        "the job it depends on has failed, so it will never start",
        "cancel it: scancel {job}",
    ),
    ("JobHeldUser", "its owner holds it back", "scontrol release {job}"),
    ("JobHeldAdmin", "an administrator holds it back", "ask the administrators of the cluster"),
    ("launch failed requeued held", "it could not be launched, and is held back", "scontrol release {job}"),
    ("job requeued in held state", "it was put back into the queue, and is held back", "scontrol release {job}"),
    (
        "Nodes required for job are DOWN, DRAINED",
        "nodes that it needs are down, drained or reserved",
        "see which ones and why: sinfo -R",
    ),
    (
        "ReqNodeNotAvail",
        "nodes that it asks for are down, drained or reserved",
        "see which ones and why: sinfo -R; scontrol show reservation",
    ),
    ("PartitionDown", "its partition is down", "see: scontrol show partition"),
    ("PartitionInactive", "its partition starts no jobs", "see: scontrol show partition"),
    ("PartitionNodeLimit", "it asks for more nodes than its partition has", "see: scontrol show partition"),
    ("PartitionTimeLimit", "its time limit is above that of its partition", "see: scontrol show partition"),
    ("BadConstraints", "no node has what it asks for", "see: scontrol show job {job}; sinfo -N -l"),
    ("InvalidAccount", "its account is not valid here", "see the account of the cluster profile"),
    ("InvalidQOS", "its QOS is not valid here", "see the directives of the cluster profile"),
    ("AccountNotAllowed", "its account may not use the partition", "see: scontrol show partition"),
    ("AssocGrp", "its account has used up what it may use", "see: sacctmgr show assoc"),
    ("AssocMax", "its account has used up what it may use", "see: sacctmgr show assoc"),
    ("QOSGrp", "its QOS has used up what it may use", "see: sacctmgr show qos"),
    ("QOSMax", "its QOS has used up what it may use", "see: sacctmgr show qos"),
    ("BeginTime", "its start time has not come; after a requeue Slurm waits some minutes", "wait, or scancel {job}"),
)


def explain(reason: str, job: object) -> str:
    """What keeps a pending job from starting and what to do, or nothing for an ordinary wait.

    >>> explain("JobHeldUser", 12)
    'its owner holds it back. fix: scontrol release 12'
    >>> explain("Priority", 12)
    ''
    """
    # scontrol writes the same reasons with underscores for the spaces.
    written = reason.replace("_", " ")
    for begin, meaning, fix in _STUCK:
        if written.startswith(begin):
            return f"{meaning}. fix: {fix.format(job=job)}"
    return ""
