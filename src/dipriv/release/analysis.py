"""What an analyst does with a release, or with its published files: intervals, and answers of the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from dipriv._base.progress import Progress
from dipriv.errors import InputError
from dipriv.release.answers import ReferenceAnswers
from dipriv.release.bootstrap import BootstrapModel
from dipriv.release.intervals import REPLICATES, AnyStatistic, Interval, Replicates, as_statistic, intervals_of
from dipriv.release.progress import shown


@dataclass(eq=False)
class Analysis:
    """The model of a release, its replicates, and the released rows, which are read when they are needed."""

    model: BootstrapModel
    _read: Callable[[], Any] = field(repr=False)

    @cached_property
    def table(self) -> Any:
        """The released rows."""
        return self._read()

    @cached_property
    def replicates(self) -> Replicates:
        return Replicates(self.model)

    @property
    def reference(self) -> ReferenceAnswers:
        return ReferenceAnswers(self.replicates)

    def interval(
        self, statistic: AnyStatistic, level: float, *, replicates: int, force: bool, progress: bool | Progress
    ) -> Interval:
        known = as_statistic(statistic, self.table, self.model)
        if len(known.names) > 1:
            raise InputError(
                f"the statistic has {len(known.names)} numbers.",
                "Use intervals([statistic]), which gives one for each.",
            )
        return self.intervals([known], level, replicates=replicates, force=force, progress=progress)[0]

    def intervals(
        self,
        statistics: Iterable[AnyStatistic],
        level: float,
        *,
        replicates: int,
        force: bool,
        progress: bool | Progress,
    ) -> tuple[Interval, ...]:
        with shown(progress) as report:
            return intervals_of(
                statistics,
                self.table,
                self.replicates,
                level=level,
                count=replicates,
                force=force,
                progress=report,
            )


class Analysable(Protocol):
    """The methods of `Release` and of `Sheet` that rest on the model of a private reference."""

    @property
    def _analysis(self) -> Analysis: ...

    @property
    def reference(self) -> ReferenceAnswers:
        """The private reference, which answers questions without rows: probabilities, means and crosstabs.

        Raises
        ------
        InputError : the reference is not private, or rows share a privacy unit: see the message.
        """
        return self._analysis.reference

    def interval(
        self,
        statistic: AnyStatistic,
        level: float = 0.95,
        *,
        replicates: int = REPLICATES,
        force: bool = False,
        progress: bool | Progress = False,
    ) -> Interval:
        """An interval for a statistic of the population that the private table was drawn from.

        Tables are drawn from the private reference, learned and released again with fresh noise; their spread and bias
        make the interval. This is post-processing: it costs no ε. A replicate takes a fraction of a second, once.

        Parameters
        ----------
        statistic : one of `dipriv.statistics`, such as Mean("age"), or a function of a dataframe that returns a number.
            A function should pick the columns that it needs by name, as t["age"] or t[["age", "sex"]]: it counts as
            reading all columns otherwise.
        level : how often intervals of this kind hold the true value.
        replicates : from how many replicates the interval is computed.
        force : give an interval although the statistic rests on pairs of columns that were not measured. It does not
            hold its level then.
        progress : show a progress bar on the terminal; or a function, as for `dipriv.privatize`.

        Returns
        -------
        Interval : its ends; or, where the statistic rests on pairs that were not measured, which these are.

        Raises
        ------
        InputError : the reference is not private, a column is not there, or the statistic has several numbers.
        """
        return self._analysis.interval(statistic, level, replicates=replicates, force=force, progress=progress)

    def intervals(
        self,
        statistics: Iterable[AnyStatistic],
        level: float = 0.95,
        *,
        replicates: int = REPLICATES,
        force: bool = False,
        progress: bool | Progress = False,
    ) -> tuple[Interval, ...]:
        """Intervals for several statistics, from the same replicates; a regression has one for each coefficient.

        Parameters
        ----------
        statistics : as in `interval`.
        level, replicates, force, progress : as in `interval`. Each interval holds its level by itself.

        Returns
        -------
        tuple of Interval : in order.

        Raises
        ------
        InputError : as for `interval`.
        """
        return self._analysis.intervals(statistics, level, replicates=replicates, force=force, progress=progress)
