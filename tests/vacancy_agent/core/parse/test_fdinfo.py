from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standins.gpu_tree import amdgpu
from vacancy_agent.core.parse.fdinfo import DrmClient, Engine, FdinfoError, load_of, parse_fdinfo

I915 = b"""pos:\t0
flags:\t02100002
drm-driver:\ti915
drm-client-id:\t7
drm-pdev:\t0000:00:02.0
drm-total-system0:\t4096 KiB
drm-engine-render:\t9288864723 ns
drm-engine-copy:\t2035071108 ns
drm-engine-video:\t0 ns
drm-engine-capacity-video:\t2
"""
XE = b"""drm-driver:\txe
drm-client-id:\t3
drm-pdev:\t0000:03:00.0
drm-cycles-rcs:\t28257900
drm-total-cycles-rcs:\t7655183225
drm-cycles-ccs:\t0
drm-total-cycles-ccs:\t7655183225
drm-engine-capacity-ccs:\t4
"""


def test_i915_counts_nanoseconds_and_says_how_many_units_an_engine_has() -> None:
    assert parse_fdinfo(I915) == DrmClient(
        "i915",
        "0000:00:02.0",
        7,
        {
            "render": Engine(9288864723),
            "copy": Engine(2035071108),
            "video": Engine(0, None, 2),
        },
    )


def test_xe_counts_cycles_against_cycles() -> None:
    client = parse_fdinfo(XE)
    assert client is not None
    assert client.engines == {"rcs": Engine(28257900, 7655183225), "ccs": Engine(0, 7655183225, 4)}
    assert client.key == ("0000:03:00.0", 3)


def test_amdgpu() -> None:
    client = parse_fdinfo(amdgpu(9, gfx=5, compute=0).encode())
    assert client is not None
    assert (client.driver, client.client) == ("amdgpu", 9)
    assert client.engines == {"gfx": Engine(5), "compute": Engine(0)}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"pos:\t0\nflags:\t02\n",
        b"drm-driver:\tvirtio_gpu\ndrm-client-id:\t1\n",
        b"drm-driver:\tnvidia-drm\n",
    ],
)
def test_what_counts_nothing_is_no_client(text: bytes) -> None:
    assert parse_fdinfo(text) is None


@pytest.mark.parametrize(
    ("find", "put", "said"),
    [
        (b"9288864723 ns", b"much", "drm-engine-render reads 'much'"),
        (b"9288864723 ns", b"-5 ns", "drm-engine-render"),
        (b"9288864723 ns", b"5 ms", "drm-engine-render"),
        (b"drm-client-id:\t7\n", b"", "drm-client-id reads 'nothing'"),
        (b"0000:00:02.0", b"platform", "names no PCI address: platform"),
        (b"drm-pdev:\t0000:00:02.0\n", b"", "names no PCI address: none"),
        (b"capacity-video:\t2", b"capacity-video:\tx", "drm-engine-capacity-video"),
    ],
)
def test_what_is_not_as_documented_is_an_error_and_no_zero(find: bytes, put: bytes, said: str) -> None:
    assert find in I915
    with pytest.raises(FdinfoError, match=said):
        parse_fdinfo(I915.replace(find, put))


def test_cycles_without_their_total_are_an_error() -> None:
    with pytest.raises(FdinfoError, match="drm-total-cycles-rcs"):
        parse_fdinfo(XE.replace(b"drm-total-cycles-rcs:\t7655183225\n", b""))


S = 1e9


@pytest.mark.parametrize(
    ("before", "after", "load"),
    [
        (Engine(1_000_000_000), Engine(1_500_000_000), 50.0),
        (Engine(0, None, 4), Engine(4_000_000_000, None, 4), 100.0),
        (Engine(0, None, 4), Engine(1_000_000_000, None, 4), 25.0),
        (Engine(0), Engine(9_000_000_000), 100.0),
        (Engine(5), Engine(4), 0.0),
        (None, Engine(200_000_000), 20.0),
        (Engine(0, 0), Engine(300, 1000), 30.0),
        (Engine(0, 0, 2), Engine(300, 1000, 2), 15.0),
        (Engine(0, 500), Engine(300, 500), 0.0),
        (None, Engine(300, 1000), 0.0),
    ],
)
def test_a_load_is_the_difference_of_two_looks(before: Engine | None, after: Engine, load: float) -> None:
    assert load_of(before, after, S) == pytest.approx(load)


@given(st.binary(max_size=400) | st.text(max_size=200).map(lambda text: b"drm-driver:x\n" + text.encode()))
def test_anything_at_all_is_read_or_refused(text: bytes) -> None:
    try:
        client = parse_fdinfo(text)
    except FdinfoError:
        return
    assert client is None or client.engines
