"""The protocol is what the API rests on: the real agent must offer all of it, and the stand-in no less."""

from __future__ import annotations

import inspect

import pytest

from standins.running import StillAgent
from vacancy_agent.admin.running import Running
from vacancy_agent.wiring.agent import Agent

ATTRIBUTES = ("version", "host", "conditions", "events", "debug")
METHODS = tuple(
    name for name, member in vars(Running).items() if inspect.isfunction(member) and name[0] != "_"
)
PROPERTIES = tuple(name for name, member in vars(Running).items() if isinstance(member, property))


def test_the_protocol_is_read_whole():
    assert set(ATTRIBUTES) == set(inspect.get_annotations(Running))
    assert {"pause", "ready", "release_hold"} <= set(METHODS)
    assert {"config_digest", "reclaims"} <= set(PROPERTIES)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", [Agent, StillAgent])
def test_every_method_is_there_with_the_same_parameters(kind: type, name: str):
    wanted, offered = getattr(Running, name), getattr(kind, name)
    assert list(inspect.signature(offered).parameters) == list(inspect.signature(wanted).parameters)
    assert inspect.iscoroutinefunction(offered) == inspect.iscoroutinefunction(wanted)


@pytest.mark.parametrize("name", PROPERTIES)
def test_every_property_is_one(name: str):
    assert isinstance(inspect.getattr_static(Agent, name), property)


def test_every_attribute_is_set_when_it_is_made():
    made = inspect.getsource(Agent.__init__)
    assert [name for name in ATTRIBUTES if f"self.{name} = " not in made] == []
