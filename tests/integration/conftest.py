# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import holdfastd  # noqa: E402


@pytest.fixture
def cluster():
    with holdfastd.Cluster() as it:
        yield it
