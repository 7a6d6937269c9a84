"""Finds the adapter of a client."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, NamedTuple

from ..calls import Recorder
from . import bedrock, cohere, google, mistral, stainless

# Set on an observed client, so that it is observed once.
_OBSERVED = "_trueup_observed"
_EARNEST, _SILENT = "earnest", "silent"

Attach = Callable[[Any, Recorder, Mapping[str, Any]], None]


class Adapter(NamedTuple):
    """Knows the clients of one provider, and observes them in place."""

    is_known: Callable[[Any], bool]
    """Whether it is a client of this provider. It imports no client: classes are known by their names and methods."""
    attach: Attach
    """Gets the client, the recorder and the labels of this client."""


ADAPTERS: List[Adapter] = [
    Adapter(stainless.is_stainless, stainless.attach_stainless),
    Adapter(google.is_google, google.attach_google),
    Adapter(mistral.is_mistral, mistral.attach_mistral),
    Adapter(cohere.is_cohere, cohere.attach_cohere),
    Adapter(bedrock.is_bedrock, bedrock.attach_bedrock),
]


def attach(client: Any, recorder: Recorder, labels: Mapping[str, Any]) -> None:
    """Finds out which client it is, and observes it in place. Raises TypeError for a client that is not known."""
    # A client that is observed in silence may be observed in earnest later.
    before = getattr(client, _OBSERVED, None)
    if before == _EARNEST or (before is not None and recorder.is_silent):
        return
    for adapter in ADAPTERS:
        if adapter.is_known(client):
            adapter.attach(client, recorder, labels)
            try:
                object.__setattr__(client, _OBSERVED, _SILENT if recorder.is_silent else _EARNEST)
            except (AttributeError, TypeError):
                # A class with slots: observing it again is its adapter's matter.
                pass
            return
    raise TypeError(f"{type(client).__name__} is none of the known clients")
