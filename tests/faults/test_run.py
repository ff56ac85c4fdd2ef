# SPDX-License-Identifier: Apache-2.0
"""A short run under faults, and the nine anomalies planted into its history.

    FAULTS_SECONDS=1800 FAULTS_SEED=1 /usr/bin/python3 -m pytest -q -s tests/faults/test_run.py

is a long one; `tests/faults/run.py` does the same without pytest.
"""
import os
import random

import checker
import planted
import run

SECONDS = int(os.environ.get("FAULTS_SECONDS", "60"))
SEED = int(os.environ.get("FAULTS_SEED", str(random.randrange(1 << 30))))


def test_a_run_under_faults():
    print(f"FAULTS_SEED={SEED}")
    history, problems, text = run.drive(SEED, SECONDS)
    print(text)
    assert run.judge(history, problems, None), f"seed {SEED}"
    assert len(history.fault) >= SECONDS // 6
    assert sum(op["outcome"] == "ok" for op in history.op) > SECONDS * 4
    assert any(op["outcome"] == "unknown" for op in history.op)
    assert any(op["cause"] == "StaleLeaderTerm" for op in history.op)
    for plant in planted.PLANTS:
        changed = history.copy()
        kind = plant(changed, random.Random(SEED))
        assert kind in {a.kind for a in checker.check(changed)}, plant.__name__
