"""The pages of sign-in, as HTML without any script. All that comes from outside is escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from urllib.parse import urlencode

from starlette.responses import HTMLResponse, Response

from acp_proxy.hub.store.devices import Waiting

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { margin: 0; display: grid; min-height: 100vh; place-items: center }
main { width: min(26rem, calc(100% - 2rem)); padding: 2rem 0 }
select { display: block; width: 100%; font: inherit; padding: .6rem .8rem; margin: .3rem 0 1rem }
h1 { font-size: 1.4rem; margin: 0 0 1rem }
label, input, button, .button { display: block; box-sizing: border-box; width: 100%; font: inherit }
input, button, .button { padding: .6rem .8rem; margin: .3rem 0 1rem; border: 1px solid #767676; border-radius: .4rem }
button, .button { background: #1f5fbf; border-color: #1f5fbf; color: #fff; text-align: center; text-decoration: none }
button.quiet { background: transparent; color: inherit; border-color: #767676 }
code.code { display: block; font-size: 2rem; letter-spacing: .1em; text-align: center; margin: 1rem 0 }
dl { display: grid; grid-template-columns: auto 1fr; gap: .2rem 1rem } dt { opacity: .75 } dd { margin: 0 }
.wrong { border-left: 4px solid #c0392b; padding-left: .8rem }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with none at all a browser does not say which site a form is of
    "Cache-Control": "no-store",
}


def sign_in(providers: Sequence[str], onward: str, wrong: str | None = None) -> Response:
    links = "".join(
        f'<a class="button" href="/signin/start?{escape(urlencode({"provider": name, "next": onward}))}">'
        f"Sign in with {escape(name)}</a>"
        for name in providers
    )
    token = f"""
<form method="post" action="/signin">
<input type="hidden" name="next" value="{escape(onward)}">
<label for="token">{"or with" if providers else "With"} a token of your administrator</label>
<input id="token" name="token" type="password" autocomplete="off" required>
<button>Sign in</button>
</form>"""
    return page("Sign in", _wrong(wrong) + links + token, 401 if wrong else 200)


def code(wrong: str | None = None, status: int = 200) -> Response:
    body = """
<form method="get" action="/device">
<label for="code">The code that your terminal shows</label>
<input id="code" name="user_code" placeholder="WDJB-MJHT" autocomplete="off" autocapitalize="characters" required>
<button>Continue</button>
</form>"""
    return page("Sign in a machine", _wrong(wrong) + body, status)


def confirm(waiting: Waiting, user: str, csrf: str) -> Response:
    body = f"""
<p>A machine wants to sign in as you. Let it in only if you began this yourself, and your terminal shows this code:</p>
<code class="code">{escape(waiting.code)}</code>
<dl>
<dt>Machine</dt><dd>{escape(waiting.machine_name or "of no name")}</dd>
<dt>Address</dt><dd>{escape(waiting.address)}</dd>
<dt>You</dt><dd>{escape(user)}</dd>
</dl>
<form method="post" action="/device">
<input type="hidden" name="user_code" value="{escape(waiting.code)}">
<input type="hidden" name="csrf" value="{escape(csrf)}">
<button name="decision" value="allow">Let it in</button>
<button class="quiet" name="decision" value="deny">Do not</button>
</form>"""
    return page("Sign in a machine", body)


def told(title: str, text: str, status: int = 200, wait: int | None = None) -> Response:
    answer = page(title, f"<p>{escape(text)}</p>", status)
    if wait is not None:
        answer.headers["Retry-After"] = str(wait)
    return answer


def _wrong(text: str | None) -> str:
    return f'<p class="wrong" role="alert">{escape(text)}</p>' if text else ""


def page(title: str, body: str, status: int = 200) -> Response:
    """`body` is HTML."""
    html = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · acp-proxy</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
    return HTMLResponse(html, status, _HEADERS)
