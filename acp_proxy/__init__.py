"""A transparent relay for the Agent Client Protocol that meters what agents use.

Importing this package imports nothing else: `acp-proxy run` starts the agent before anything heavy is loaded. The
names in `__all__` are loaded when they are asked for.
"""

TYPE_CHECKING = False  # `typing` is heavy
if TYPE_CHECKING:
    from acp_proxy.interceptor import Admitted as Admitted
    from acp_proxy.interceptor import Interceptor as Interceptor
    from acp_proxy.interceptor import Refusal as Refusal
    from acp_proxy.library.embedded import Relay as Relay
    from acp_proxy.library.usages import Usage as Usage
    from acp_proxy.system.spawn import NotStarted as NotStarted

__version__ = "0.1.0"
__all__ = ["Admitted", "Interceptor", "NotStarted", "Refusal", "Relay", "Usage"]

_HOMES = {
    "Admitted": "interceptor",
    "Interceptor": "interceptor",
    "NotStarted": "system.spawn",
    "Refusal": "interceptor",
    "Relay": "library.embedded",
    "Usage": "library.usages",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
