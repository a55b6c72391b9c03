"""The machine's part of the device flow (RFC 8628): asks for a code, and then whether somebody has let it in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from acp_proxy.signin import SignInError, UnreachableError
from acp_proxy.signin.asking import RefusedError, post

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_SLOWER = 5  # seconds: RFC 8628, 3.5


class Code(Struct, frozen=True):
    """`page` has the code in it already."""

    code: str
    page: str
    bare_page: str
    device: str
    seconds: int
    pause: int

    def __repr__(self) -> str:
        return f"Code({self.code!r})"


def begin(addresses: Mapping[str, str], machine: str, name: str) -> Code:
    """Raises SignInError."""
    answer = post(addresses["device_authorization_endpoint"], {"machine": machine, "machine_name": name})
    try:
        page = str(answer["verification_uri"])
        complete = str(answer.get("verification_uri_complete", page))
        seconds, pause = int(answer["expires_in"]), int(answer.get("interval", 5))
        return Code(str(answer["user_code"]), complete, page, str(answer["device_code"]), seconds, pause)
    except (KeyError, ValueError, TypeError) as error:
        raise SignInError("the hub answers what is no code") from error


def granted(
    addresses: Mapping[str, str], code: Code, sleep: Callable[[float], object], clock: Callable[[], float]
) -> dict[str, Any]:
    """What the hub grants when somebody has let the machine in. Raises SignInError."""
    for _ in _questions(code, sleep, clock):
        try:
            sent = {"grant_type": _GRANT, "device_code": code.device}
            return post(addresses["token_endpoint"], sent)
        except UnreachableError:
            continue  # RFC 8628, 3.5: the connection may come back while the code holds
        except RefusedError as error:
            match error.error:
                case "authorization_pending":
                    continue
                case "slow_down":
                    sleep(_SLOWER)
                case _:
                    raise
    raise SignInError("nobody has let this machine in: run acp-proxy login again")


def _questions(code: Code, sleep: Callable[[float], object], clock: Callable[[], float]) -> Iterator[None]:
    deadline = clock() + code.seconds
    while clock() < deadline:
        sleep(code.pause)
        yield
