"""Reports each call of the official LLM clients to Trueup, and applies its enforcement rules before the call."""

from .calls import VerdictNote
from .errors import TrueupBlockedError
from .labels import Labels, labeled, with_labels
from .reporter import ReporterStats
from .trueup import (
    SpoolOptions,
    Trueup,
    TrueupOptions,
    flush,
    flush_async,
    observe,
    ready,
    ready_async,
    shutdown,
    shutdown_async,
)
from .version import VERSION as __version__

__all__ = [
    "Labels",
    "ReporterStats",
    "SpoolOptions",
    "Trueup",
    "TrueupBlockedError",
    "TrueupOptions",
    "VerdictNote",
    "__version__",
    "flush",
    "flush_async",
    "labeled",
    "observe",
    "ready",
    "ready_async",
    "shutdown",
    "shutdown_async",
    "with_labels",
]
