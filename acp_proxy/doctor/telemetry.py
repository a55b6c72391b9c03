"""The check of `doctor` for OpenTelemetry: whether each receiver takes a request. It has nothing in it."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Iterator, Mapping

from acp_proxy.config import Config, ConfigError
from acp_proxy.config.values import Otlp


def telemetry_troubles(config: Config, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each signal in words, with what is wrong with it, or nothing."""
    if config.otlp == Otlp() and not any(name.startswith("OTEL_") for name in environ):
        return
    try:
        from acp_proxy.otlp.settings import settings_of  # few send any, and its HTTP client need not be installed

        settings = settings_of(config, environ)
        for target in settings.targets if settings else ():
            from acp_proxy.otlp.sending import Outcome, Poster

            async def posted(poster: Poster) -> Outcome:
                try:
                    return await poster.post(gzip.compress(b"", mtime=0) if poster.to.gzip else b"")
                finally:
                    await poster.aclose()

            outcome = asyncio.run(posted(Poster(target, time.time_ns)))
            yield f"otlp: {target.signal} to {target.host}", "" if outcome.result == "sent" else outcome.error or ""
    except ConfigError as error:
        yield "otlp", str(error)
    except ModuleNotFoundError as error:
        yield "otlp", f"needs {error.name}: pip install '.[serve]'"
