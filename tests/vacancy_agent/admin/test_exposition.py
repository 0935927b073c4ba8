"""The text format, as Prometheus' own parser reads it."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from vacancy_agent.admin.exposition import counter, gauge, text


def test_what_is_written_is_what_is_read():
    load = gauge("load", 'Of "all", a \\ and a\nline.', "name", "kind")
    load.add(0.1, 'a"b\\c\nd', "x=y,{}")
    load.add(True, "é", "")
    count = counter("things", "Counted.")
    count.add(12345678901)
    empty = gauge("nothing", "Not known.")
    load_read, count_read, empty_read = text_string_to_metric_families(text([load, count, empty]).decode())
    assert (load_read.type, load_read.documentation) == ("gauge", load.about)
    assert [(sample.labels, sample.value) for sample in load_read.samples] == [
        ({"name": 'a"b\\c\nd', "kind": "x=y,{}"}, 0.1),
        ({"name": "é", "kind": ""}, 1.0),
    ]
    assert (count_read.type, count_read.samples[0].name) == ("counter", "vacancy_things_total")
    assert count_read.samples[0].value == 12345678901
    assert empty_read.samples == []
