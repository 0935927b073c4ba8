from __future__ import annotations

import json
import subprocess
import sys

import pytest

from vacancy_agent.platform.file_limit import ENOUGH

PROGRAM = """
import json, resource, sys
from vacancy_agent.platform.file_limit import raise_file_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
raise_file_limit()
print(json.dumps(resource.getrlimit(resource.RLIMIT_NOFILE)))
"""


@pytest.mark.parametrize(("soft", "hard", "then"), [(256, 1000, 1000), (1000, 1000, 1000)])
def test_the_soft_limit_goes_up_to_the_hard_one(soft: int, hard: int, then: int) -> None:
    command = [sys.executable, "-c", PROGRAM, str(soft), str(hard)]
    ran = subprocess.run(command, capture_output=True, check=True)
    assert json.loads(ran.stdout) == [then, hard]
    assert then <= ENOUGH
