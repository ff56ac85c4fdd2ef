# SPDX-License-Identifier: Apache-2.0
"""Which faults happen when. Pure: one seed is one schedule.

A schedule has rounds. Within a round faults come about every second, and up to LIMIT of them are
there at the same time; at its end all have ended, and nothing fails for CALM seconds, so that each
round begins with a system that works. A target like "leader" or "watched" is resolved when the fault
happens; everything else comes from the seed.
"""
import dataclasses
import random

ROUND = 24.0
CALM = 4.0
LIMIT = 3
N = 3  # members, and instances

# kind: (weight, least duration, greatest duration); a duration of 0 is a moment
KINDS = {
    "member-stop": (10, 1, 10),      # SIGSTOP of an etcd member
    "watched-stop": (12, 3, 12),     # of the one that an instance's watch hangs on
    "leader-stop": (6, 1, 8),        # of etcd's leader
    "two-stop": (3, 1, 4),           # of two members: no quorum
    "member-kill": (10, 0.2, 4),     # SIGKILL, and a restart with its data
    "leader-kill": (8, 0.2, 4),
    "link-hang": (14, 0.5, 9),       # one direction between an instance and a member
    "links-hang": (5, 0.5, 6),       # ... and all members
    "watched-hang": (8, 2, 10),      # ... and the member that its watch hangs on
    "peer-hang": (8, 0.5, 5),        # one direction of what other members open to a member
    "link-cut": (10, 0, 0),          # all connections between an instance and all members
    "peer-cut": (5, 0, 0),
    "compact": (12, 0, 0),           # up to the newest revision
    "defrag": (5, 0, 0),
    "instance-pause": (8, 5, 9),     # SIGSTOP beyond the lease's duration
    "instance-kill": (9, 0.1, 3),    # SIGKILL, and a restart
    "instance-term": (3, 0.1, 2),    # SIGTERM, and a restart
}


@dataclasses.dataclass(frozen=True)
class Fault:
    at: float          # seconds since the begin
    kind: str
    target: int        # the member or the instance
    other: int         # the member of a link's fault
    lasts: float
    directions: tuple  # of a hang
    cut: bool          # a hang ends with a reset, and not with what was kept

    def __str__(self):
        what = "-".join(self.directions) + ("-cut" if self.directions and self.cut else "")
        return f"{self.at:7.2f} {self.kind} {self.target}/{self.other} {what} {self.lasts:.2f}"


def one(dice, at, end):
    kind = dice.choices(list(KINDS), [w for w, _, _ in KINDS.values()])[0]
    _, least, greatest = KINDS[kind]
    lasts = min(dice.uniform(least, greatest), max(end - at, 0.1)) if greatest else 0.0
    hang = kind.endswith("-hang")
    directions = dice.choice((("up",), ("down",), ("up", "down"))) if hang else ()
    return Fault(round(at, 3), kind, dice.randrange(N), dice.randrange(N), round(lasts, 3),
                 directions, dice.random() < 0.5)


def make(seed, duration):
    """All faults of a run of that many seconds, in order."""
    dice, faults, begin = random.Random(seed), [], 2.0
    while begin + 3 < duration:
        end = min(begin + ROUND, duration - 1)
        at, active = begin, []
        while True:
            at += dice.expovariate(1.0)
            if at > end - 0.5:
                break
            fault = one(dice, at, end)
            active = [f for f in active if f.at + f.lasts > at]
            if len(active) < LIMIT:
                active.append(fault)
                faults.append(fault)
        begin = end + CALM
    return faults
