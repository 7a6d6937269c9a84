"""Whose call it is. Rules have scopes of team and feature, and count by session."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Awaitable, Callable, Dict, NamedTuple, Optional, Type, TypedDict, TypeVar, cast


class Labels(TypedDict, total=False):
    """Labels of a call; `project` is needed where it is not the key's workspace."""

    team: Optional[str]
    feature: Optional[str]
    session: Optional[str]
    user: Optional[str]
    project: Optional[str]
    environment: Optional[str]


NAMES = ("team", "feature", "session", "user", "project", "environment")
# The option of one call, where a client passes unknown options on; removed before the provider sees the request.
OPTION = "trueup"


class _Given(NamedTuple):
    labels: Labels
    """Those of the outer ones too."""
    outer: Optional["_Given"]
    owner: object


_context: ContextVar[Optional[_Given]] = ContextVar("trueup_labels", default=None)

Function = TypeVar("Function", bound=Callable[..., Any])


class with_labels:  # noqa: N801 - used as a statement
    """
    Gives labels to every call within: `with with_labels(session="s-17"):`, the same with `async with`, or as a
    decorator of a function, also of an `async` one. Inner labels add to outer ones. Tasks that start within inherit
    them; threads do not, unless they run in a copy of the context.
    """

    def __init__(
        self,
        *,
        team: Optional[str] = None,
        feature: Optional[str] = None,
        session: Optional[str] = None,
        user: Optional[str] = None,
        project: Optional[str] = None,
        environment: Optional[str] = None,
    ) -> None:
        given = (team, feature, session, user, project, environment)
        self._labels = cast(Labels, {name: value for name, value in zip(NAMES, given) if value is not None})

    def __enter__(self) -> None:
        outer = _context.get()
        labels = cast(Labels, {**outer.labels, **self._labels}) if outer else self._labels
        _context.set(_Given(labels, outer, self))

    def __exit__(
        self,
        error_type: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        given = _context.get()
        # A generator that is closed elsewhere leaves in another context, which never had these labels.
        if given is not None and given.owner is self:
            _context.set(given.outer)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(
        self,
        error_type: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.__exit__(error_type, error, trace)

    def __call__(self, work: Function) -> Function:
        if inspect.isgeneratorfunction(work) or inspect.isasyncgenfunction(work):
            raise TypeError("with_labels cannot decorate a generator: its caller runs between its items")
        return labeled(work, **self._labels)


def labeled(
    work: Function,
    *,
    team: Optional[str] = None,
    feature: Optional[str] = None,
    session: Optional[str] = None,
    user: Optional[str] = None,
    project: Optional[str] = None,
    environment: Optional[str] = None,
) -> Function:
    """
    Gives labels to one call: `labeled(client.responses.create, feature="draft")(model=model, input=text)`. What it
    returns has the type of `work`. If `work` is asynchronous, so is the labeled one.
    """
    given = (team, feature, session, user, project, environment)
    labels = {name: value for name, value in zip(NAMES, given) if value is not None}

    if inspect.iscoroutinefunction(work):

        @functools.wraps(work)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            with with_labels(**labels):
                return await work(*args, **kwargs)

        return cast(Function, run_async)

    @functools.wraps(work)
    def run(*args: Any, **kwargs: Any) -> Any:
        with with_labels(**labels):
            result = work(*args, **kwargs)
        return _within(labels, result) if inspect.iscoroutine(result) else result

    return cast(Function, run)


async def _within(labels: Dict[str, str], work: Awaitable[Any]) -> Any:
    with with_labels(**labels):
        return await work


def merge_labels(*given: Optional[Mapping[str, Any]]) -> Dict[str, str]:
    """The labels of all, of which the last that has a label counts."""
    merged: Dict[str, str] = {}
    for labels in given:
        if labels:
            for name, value in labels.items():
                if value is not None and name in NAMES:
                    merged[name] = value if type(value) is str else str(value)
    return merged


def context_labels() -> Optional[Labels]:
    """The labels of the context."""
    given = _context.get()
    return None if given is None else given.labels


def is_mapping(value: Any) -> bool:
    """Most are dictionaries, and asking for the abstract class takes longer than for the class itself."""
    return type(value) is dict or isinstance(value, Mapping)


def own_labels(params: Any) -> Optional[Labels]:
    """The labels in the option of one call's parameters; None: it has none."""
    if params is None or not is_mapping(params):
        return None
    option = params.get(OPTION)
    return None if option is None or not is_mapping(option) else cast(Labels, option)


def without_option(params: Any) -> Any:
    """The parameters without the option; the same object where they have none."""
    if params is None or not is_mapping(params) or OPTION not in params:
        return params
    return {name: value for name, value in params.items() if name != OPTION}
