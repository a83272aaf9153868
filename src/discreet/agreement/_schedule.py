"""`Schedule`: the dates of an agreement's rounds, so that a nightly job names its round by a date.

Round 1 is the day, week or month that begins at the start, and every later one begins where the one before ends. A date lies in one round
at most, so a job that runs again for the same date asks for the same round, and a job for another day for another one.
"""

from dataclasses import dataclass
from datetime import date
from typing import Any

from discreet.agreement._family_terms import AgreementTerms, Fields
from discreet.domain import read_day
from discreet.errors import DiscreetError, check_choice

SCHEDULE = Fields.of("start every")
_IN_A_YEAR = {"day": 366, "week": 53, "month": 12}  # rounds that begin in one calendar year, at most
_DAYS = {"day": 1, "week": 7}
_LAST = date.max.toordinal()


@dataclass(frozen=True, eq=False)
class Schedule(AgreementTerms):
    """When the rounds of an agreement are: each a day, a week or a month, from a start on.

    Args:
        start: the first day of round 1, a date or a text such as 2026-11-17; of months the first of one.
        every: "day", "week" or "month".

    Raises:
        DiscreetError: for what is no date, and months that do not start on the first.
    """

    FIELDS = ("start", "every")

    start: str
    every: str

    def __post_init__(self) -> None:
        check_choice("schedule.every", self.every, _IN_A_YEAR)
        first = read_day("schedule.start", self.start)
        if self.every == "month" and first.day != 1:
            raise DiscreetError(f"schedule.start = {first} is not the first of a month; months start there")
        object.__setattr__(self, "start", first.isoformat())

    @property
    def most_in_a_year(self) -> int:
        """The largest number of rounds that begin in a calendar year."""
        return _IN_A_YEAR[self.every]

    def number(self, day: str | date) -> int:
        """The number of the round in which a day lies; less than 1 before the start.

        Args:
            day: a date, or a text such as 2026-11-17.

        Returns:
            The number.

        Raises:
            DiscreetError: for what is no date.
        """
        found, first = read_day("day", day), date.fromisoformat(self.start)
        if self.every == "month":
            return 12 * (found.year - first.year) + found.month - first.month + 1
        return (found - first).days // _DAYS[self.every] + 1

    def first_day(self, number: int) -> date:
        """The first day of a round; the last day that there is for rounds beyond it.

        Args:
            number: of the round, from 1.

        Returns:
            The date.
        """
        first = date.fromisoformat(self.start)
        if self.every == "month":
            months = first.month - 1 + number - 1
            year = first.year + months // 12
            return date(year, months % 12 + 1, 1) if year <= date.max.year else date.max
        return date.fromordinal(min(first.toordinal() + _DAYS[self.every] * (number - 1), _LAST))

    def last_day(self, number: int) -> date:
        """The last day of a round.

        Args:
            number: of the round, from 1.

        Returns:
            The date.
        """
        after = self.first_day(number + 1)
        return after if after == date.max else date.fromordinal(after.toordinal() - 1)


def is_day(given: Any) -> bool:
    """Whether a round is given by a date: a date, or a text."""
    return isinstance(given, (str, date))
