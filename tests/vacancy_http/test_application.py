from __future__ import annotations

from typing import TYPE_CHECKING

from standins.http_engine import CountedBudget, NotingApp, Rig

if TYPE_CHECKING:
    from vacancy_http import Application, BodyBudget


def test_the_stand_ins_have_the_faces_that_the_engine_asks_for() -> None:
    rig = Rig()
    app: Application = rig.app
    budget: BodyBudget = app.budget
    assert isinstance(app, NotingApp)
    assert isinstance(budget, CountedBudget)


def test_the_engine_names_all_that_an_application_needs() -> None:
    import vacancy_http

    for name in vacancy_http.__all__:
        assert getattr(vacancy_http, name) is not None
