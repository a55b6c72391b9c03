"""Messages of budgets to the user, in a form that the client shows: responses, notices, or messages of the agent."""

from __future__ import annotations

from typing import Literal

from acp_proxy.core import acp
from acp_proxy.core.effects import Send
from acp_proxy.core.events import Initialized, Side
from acp_proxy.core.jsonrpc import Request
from acp_proxy.core.stop_reasons import ENDED
from acp_proxy.interceptor import Refusal

_INVALID_PARAMS = -32602
_NO_TURN = (
    "Not sent to the agent: no turn runs that this could be a part of, and a budget admits prompts. Send a prompt."
)
_INTERNAL_ERROR = -32603  # with data of exactly {"details": …} Zed shows only these; no code means a budget


class ClientMessages:
    """The messages of one connection, each about a budget by its name.

    `style` is the form of refusals in version 1; version 2 has only the error.
    """

    def __init__(self, style: Literal["message", "error"]) -> None:
        self._style = style
        self._version = 1
        self._notices = self._forms = False

    def meet(self, initialized: Initialized) -> None:
        self._version = initialized.protocol_version
        self._notices = initialized.client_notices
        self._forms = initialized.client_forms

    def can_be_asked(self, how: Literal["form", "choice", "never"]) -> Literal["form", "choice"] | None:
        """How the client is asked something. A choice is made in a dialogue for permissions, as version 1 has it."""
        if how == "never":
            return None
        return "form" if self._forms else "choice" if how == "choice" and self._version == 1 else None

    def cancelled(self) -> Refusal:
        """For a prompt that its user has cancelled meanwhile."""
        if self._version >= 2:
            return Refusal(error={"code": acp.REQUEST_CANCELLED, "message": "Request cancelled"})
        return Refusal(result={"stopReason": "cancelled"})

    def refuse(self, session: str, budget: str, text: str) -> Refusal:
        if self._style == "error" or self._version >= 2:
            return Refusal(error={"code": _INTERNAL_ERROR, "message": text, "data": {"details": text}})
        return Refusal(
            result={"stopReason": ENDED, "_meta": {"acp-proxy": {"budget": budget}}},
            effects=(Send(Side.CLIENT, acp.message_line(session, text)),),
        )

    def refuse_odd(self, request: Request) -> Refusal:
        """For a request that would begin a turn that cannot be followed, such as a prompt without a session.

        Agents on the SDK for Python read `session_id`, too. Claude and Codex take words for a turn that runs as a
        prompt where none does, and answer before they know what it uses.
        """
        if request.method == acp.PROMPT:
            text = "Invalid params: a prompt has to say its sessionId"
            return Refusal(error={"code": _INVALID_PARAMS, "message": text})
        if request.method == acp.STEERING and acp.prompts_itself(request.params):
            return Refusal(result={"outcome": "promptRequired", "reason": "noRunningTurn"})
        return Refusal(error={"code": _INTERNAL_ERROR, "message": _NO_TURN, "data": {"details": _NO_TURN}})

    def say(self, session: str, budget: str, text: str, *, first: bool = False) -> Send:
        """A warning; `first`: before anything of the agent's in this turn."""
        if self._notices:
            line = acp.notice_line(session, "warning", f'Budget "{budget}"', text)
        else:
            line = acp.message_line(session, f"{text}\n\n" if first else f"\n\n{text}\n\n")
        return Send(Side.CLIENT, line)
