from __future__ import annotations

import pytest

from vacancy_agent.core.parse.pci import normal_pci


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        pytest.param("00000000:01:00.0", "0000:01:00.0", id="nvidia-smi"),
        pytest.param("0000:0A:1F.7", "0000:0a:1f.7", id="upper case"),
        pytest.param("01:00.0", "0000:01:00.0", id="without a domain"),
        pytest.param("00010000:65:00.0", "10000:65:00.0", id="a domain past ffff, as a VMD controller has"),
        pytest.param(" 1:0.0 ", "0000:01:00.0", id="short"),
        pytest.param("GPU-0a11c0de-0000-4000-8000-000000000000", None, id="a UUID"),
        pytest.param("[N/A]", None, id="not available"),
        pytest.param("01:00", None, id="no function"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_one_spelling(text: str, normal: str | None) -> None:
    assert normal_pci(text) == normal
