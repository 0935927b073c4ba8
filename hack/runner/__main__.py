"""`hack/test`: run every stage, whatever fails, then say what was seen and what could not be."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from runner.checks import run_checks
from runner.tiers import TIERS, run_tier

if TYPE_CHECKING:
    from runner.stage import Outcome

STAGES = ("checks", *(tier.name for tier in TIERS))


def parse(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our own options, and what is left for pytest."""
    parser = argparse.ArgumentParser(
        prog="hack/test",
        description="Checks, then the tiers of tests that this machine can run. All else goes to pytest.",
        epilog="VACANCY_REQUIRE=all: whatever could not run on this machine is a failure.",
        allow_abbrev=False,
    )
    parser.add_argument("--only", action="append", choices=STAGES, metavar="STAGE", help=", ".join(STAGES))
    parser.add_argument("--slow", action="store_true", help="the slow tier too")
    return parser.parse_known_args(argv)


def chosen_stages(options: argparse.Namespace, pytest_args: list[str]) -> list[str]:
    """The stages to run: a selection of tests leaves the checks out, the slow tier is asked for."""
    if options.only:
        return [stage for stage in STAGES if stage in options.only]
    chosen = ["unit", "component", "control"]
    chosen = chosen if pytest_args else ["checks", *chosen]
    return [*chosen, "slow"] if options.slow else chosen


def run(stages: list[str], pytest_args: list[str]) -> list[Outcome]:
    """Run the stages in their order."""
    tiers = [tier for tier in TIERS if tier.name in stages]
    # A person's selection of tests starts no build: what it lacks is then said by the tests themselves.
    ahead = {} if pytest_args else {tier.name: tier.start() for tier in tiers}
    try:
        outcomes = run_checks() if "checks" in stages else []
        for tier in tiers:
            outcomes.append(run_tier(tier, pytest_args, strict=not pytest_args, ahead=ahead.get(tier.name)))
    finally:
        for started in ahead.values():
            if started is not None:
                started.end()
    return outcomes


def summarise(outcomes: list[Outcome], *, require_all: bool) -> bool:
    """Print the summary. Returns whether the run is good."""
    print("\n=== summary")
    for outcome in outcomes:
        verdict = "ok" if outcome.passed else "FAILED"
        print(f"  {outcome.name:<12} {verdict:<7} {outcome.seconds:7.1f} s  {outcome.note}".rstrip())
    lines = [f"{outcome.name}: {line}" for outcome in outcomes for line in outcome.not_run]
    if lines:
        print("=== could not run here" + (" (a failure: VACANCY_REQUIRE=all)" if require_all else ""))
        for line in lines:
            print(f"  {line}")
    good = all(outcome.passed for outcome in outcomes) and not (lines and require_all)
    print(
        f"=== {'good' if good else 'NOT GOOD'} in {sum(outcome.seconds for outcome in outcomes):.0f} s",
        flush=True,
    )
    return good


def main() -> int:
    """Exit code: 0 good, 1 not."""
    options, pytest_args = parse(sys.argv[1:])
    outcomes = run(chosen_stages(options, pytest_args), pytest_args)
    return 0 if summarise(outcomes, require_all=os.environ.get("VACANCY_REQUIRE") == "all") else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
