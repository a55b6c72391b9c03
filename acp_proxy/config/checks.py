"""Checks of configuration values: functions from TOML values to the values that the program uses.

Each raises ValueError with a text that begins "expected", and never repeats a value that may be a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

from acp_proxy.system.directories import HOW_SYNCHRONOUS, SYNCHRONOUS

if TYPE_CHECKING:
    from acp_proxy.config.channels import Secret
    from acp_proxy.core.notice import NoticeKind
    from acp_proxy.core.windows import Window

Check = Callable[[object], object]
Amount = int | Literal["auto"]

WINDOWS = ("turn", "session", "day", "week", "month", "quarter", "total", "rolling:24h")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}
_LONGEST_NAME = 200  # characters; names become labels of metrics
_LONGEST_AMOUNT = 18  # digits
_AMOUNTS = 2**63  # nano-units, beyond what a ledger's column holds
_LONGEST_URL = 2000  # characters
_LONGEST_PATH = 4096  # characters; no system takes more
_LONGEST_NUMBER = 6  # digits of a duration
_MOST_TOKENS = 10**12
_MOST_PERCENT = 1000
_MOST_DAYS = 366
_ALL = 100  # percent


def text(value: object) -> str:
    return _printable(value, _LONGEST_NAME)


def path(value: object) -> str:
    return _printable(value, _LONGEST_PATH)


def _printable(value: object, longest: int) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text in quotes, not {kind_of(value)}")
    if not value.strip() or not value.isprintable() or len(value) > longest:
        raise ValueError(f"expected 1 to {longest} printable characters")
    return value.strip()


def flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, not {kind_of(value)}")
    return value


def tokens(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"expected a number of tokens such as 200_000, not {kind_of(value)}")
    if value < 1:
        raise ValueError("expected a number of tokens above 0")
    if value > _MOST_TOKENS:
        raise ValueError(f"expected a number of tokens up to {_MOST_TOKENS:,}")
    return value


def price(value: object) -> str:
    """Decimal text, as it was written: a float would already have lost what was meant."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f'expected a decimal in quotes, such as "1.20"{_quoted(value, price)}')
    whole, point, fraction = value.partition(".") if isinstance(value, str) else ("", "", "")
    digits, is_whole = whole + fraction, bool(whole) and bool(fraction or not point)
    if not (is_whole and digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_AMOUNT):
        raise ValueError('expected US dollars per million tokens as a decimal in quotes, such as "1.20"')
    return str(value)


def duration(value: object) -> float:
    """Seconds."""
    number = value.rstrip("ms") if isinstance(value, str) else ""
    unit = value[len(number) :] if isinstance(value, str) else ""
    digits = number.isascii() and number.isdigit() and len(number) <= _LONGEST_NUMBER
    if not (digits and int(number) > 0 and unit in _SECONDS):
        raise ValueError('expected a duration such as "250ms" or "2s"')
    return int(number) * _SECONDS[unit]


def ledger_url(value: object) -> str:
    """A URL, or the path of a file. Only the form is checked. A URL may hold a password, so no message repeats it."""
    url = path(value)
    if "://" not in url and not _is_address(url):
        url = f"sqlite:///{url}"
    scheme, _, rest = url.partition("://")
    if scheme in ("postgresql", "postgres"):
        if "/" not in rest:
            raise ValueError("expected postgresql://HOST/DATABASE")
        if not _is_plain(rest):
            _check_address(url)
        return url
    if scheme in ("https", "http"):
        _check_hub(url)
        return url
    if scheme != "sqlite" or not rest.startswith("/") or len(rest) < 2:
        raise ValueError("expected a path, sqlite:///PATH, postgresql://HOST/DATABASE or https://HUB")
    _, asked, how = rest.partition(SYNCHRONOUS)
    if asked and how not in HOW_SYNCHRONOUS:
        raise ValueError("expected synchronous=full or synchronous=normal after the path")
    return url


def _is_address(text: str) -> bool:
    """Whether it is no path but a URL that lacks a part, e.g. `alice:secret@db/acp`, or another scheme's."""
    return ("@" in text and ":" in text) or text.partition(":")[0] in ("sqlite", "postgresql", "postgres")


def _is_plain(address: str) -> bool:
    """Whether nothing can be wrong with USER:PASSWORD@HOST:PORT/DATABASE?OPTIONS, told without any import."""
    names, _, place = address.partition("/")
    database, _, options = place.partition("?")
    host, colon, port = names.rpartition("@")[2].partition(":")
    is_host = host.replace("-", "").replace(".", "").isalnum()
    is_name = database.replace("-", "").replace("_", "").isalnum()
    unusual = any(sign in names for sign in "#?[]") or "port" in options or "channel_binding" in options
    return address.isascii() and is_host and is_name and (not colon or port.isdigit()) and not unusual


def _check_address(url: str) -> None:
    """By who will open it."""
    from acp_proxy.ledger import LedgerError
    from acp_proxy.ledger.postgres_address import Address  # 4 ms, for which the agent would wait

    try:
        Address.of(url)
    except LedgerError as error:
        problem = str(error).removeprefix("ledger ").partition(", expected")[0]
        raise ValueError(f"expected postgresql://HOST/DATABASE, not a {problem}") from None


def _check_hub(url: str) -> None:
    from acp_proxy.ledger import LedgerError
    from acp_proxy.ledger.hub_address import hubs_of  # few have one

    try:
        hubs_of(url)
    except LedgerError as error:
        raise ValueError(str(error).partition(", ")[2]) from None


def one_of(*choices: str) -> Check:
    def check(value: object) -> str:
        if isinstance(value, str) and value.lower() in choices:
            return value.lower()
        raise ValueError(f"expected {listed(choices)}{suggestion(str(value), choices)}")

    return check


def amount(value: object) -> int:
    """Nano-units of money, from a decimal in quotes."""
    from acp_proxy.core.money import NANO, rounded

    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f'expected an amount as a decimal in quotes, such as "30"{_quoted(value, amount)}')
    digits = value.replace(".", "", 1) if isinstance(value, str) else ""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_AMOUNT):
        raise ValueError('expected an amount from 0, such as "30" or "0.50"')
    decimals = len(digits) - len(str(value).partition(".")[0])
    nano = rounded(int(digits) * NANO, 10**decimals)
    if nano >= _AMOUNTS:
        raise ValueError("expected an amount of at most 9,223,372,036")
    return nano


def rate(value: object) -> int:
    """Nano-units that one of a currency counts as, from a decimal in quotes."""
    expected = 'expected what one of it counts as in the currency of the limit, a decimal in quotes such as "0.92"'
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f"{expected}{_quoted(value, rate)}")
    try:
        nano = amount(value)
    except ValueError:
        nano = 0
    if nano == 0:
        raise ValueError(f"{expected}, above 0")
    return nano


def currency(value: object) -> str:
    name = text(value)
    if name in ("tokens", "turns"):
        raise ValueError(f'expected a currency such as "USD"; a limit of {name} is {{ {name} = … }}')
    from acp_proxy.core.money import currency_code

    if (code := currency_code(name)) != name:
        raise ValueError(f'expected a currency such as "USD"; did you mean "{code}"?')
    return name


def count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"expected a whole number such as 200, not {kind_of(value)}")
    if not 0 <= value < 2**63:
        raise ValueError("expected a whole number from 0")
    return value


def port(value: object) -> int:
    """0 is any that is free."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**16:
        raise ValueError("expected a port from 0 to 65535, such as 9464")
    return value


def percent(value: object) -> int:
    """Of something that can be used up."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"expected a whole percent such as 80, not {kind_of(value)}")
    if not 0 < value <= _ALL:
        raise ValueError(f"expected a percent from 1 to {_ALL}")
    return value


def percents(value: object) -> tuple[int, ...]:
    """Ascending, each once."""
    if not isinstance(value, list) or any(not isinstance(each, int) or isinstance(each, bool) for each in value):
        raise ValueError("expected a list of whole percents such as [50, 80, 100]")
    if any(not 0 < each <= _MOST_PERCENT for each in value):
        raise ValueError(f"expected percents from 1 to {_MOST_PERCENT}")
    return tuple(sorted(set(value)))


def patterns(value: object) -> tuple[str, ...]:
    """One name or several, where `*` stands for any text."""
    if not isinstance(value, list):
        return (text(value),)
    if not value:
        raise ValueError("expected a name or a list of them, not an empty list")
    return tuple(map(text, value))


def names(value: object) -> tuple[str, ...]:
    """None, one or several."""
    return tuple(map(text, value)) if isinstance(value, list) else (text(value),)


def window(value: object) -> Window:
    from acp_proxy.core.windows import Window  # here and above: only who has a budget pays for the import

    name = text(value)
    try:
        return Window.parse(name)
    except ValueError as error:
        raise ValueError(f"{error}{suggestion(name, WINDOWS)}") from None


def zone(value: object) -> str:
    from acp_proxy.text import times

    return times.zone(text(value)).name


def hold(value: object) -> Amount:
    """`auto`, or in the limit's unit: the decimal of an amount of money, or a whole number."""
    if value == "auto":
        return "auto"
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ValueError(f'expected "auto", an amount in quotes or a whole number, not {kind_of(value)}')
    size = count(value) if isinstance(value, int) else amount(value)
    if size == 0:
        raise ValueError('expected "auto", or what a turn may cost, above 0')
    return size


def kinds(value: object) -> tuple[NoticeKind, ...]:
    """The kinds of notices: a list, or one."""
    from acp_proxy.core.notice import KINDS

    wanted = value if isinstance(value, list) else [value]
    check = one_of(*KINDS)
    if not wanted:
        raise ValueError(f"expected some of {listed(KINDS, 'and')}, not an empty list")
    found = [check(each) for each in wanted]
    return tuple(kind for kind in KINDS if kind in found)


def webhook(value: object) -> str:
    """No error message repeats the URL: anyone who knows it can post there."""
    from urllib.parse import urlsplit

    expected = "expected the URL of a webhook, https://HOST/…"
    if not isinstance(value, str) or not value.isprintable() or " " in value or len(value) > _LONGEST_URL:
        raise ValueError(expected)
    try:
        url = urlsplit(value)
        host = url.hostname or ""
        _ = url.port
    except ValueError:
        raise ValueError(expected) from None
    if not host or url.scheme not in ("http", "https"):
        raise ValueError(expected)
    if url.scheme == "http" and not _is_loopback(host):
        raise ValueError(f"{expected}; http only to this machine")
    return value


def address(value: object) -> str:
    """The URL of a collector. No message repeats it: a key may be part of it."""
    from urllib.parse import urlsplit

    expected = "expected the URL of a collector, such as http://127.0.0.1:4318"
    if not isinstance(value, str) or not value.isprintable() or " " in value or len(value) > _LONGEST_URL:
        raise ValueError(expected)
    try:
        url = urlsplit(value)
        _ = url.port
    except ValueError:
        raise ValueError(expected) from None
    if not url.hostname or url.scheme not in ("http", "https") or url.query or url.fragment:
        raise ValueError(expected)
    return value


def reference(value: object) -> str:
    """Where a secret stands. What is given may be the secret itself: no message repeats it."""
    inner = value[2:-1] if isinstance(value, str) and value.startswith("${") and value.endswith("}") else ""
    named = inner.removeprefix("file:") if inner.startswith("file:") else inner.removeprefix("ENV:")
    if not named.strip() or not named.isprintable() or len(named) > _LONGEST_PATH:
        raise ValueError("expected ${NAME} or ${file:PATH}: a key does not stand here")
    return str(value)


def provider_address(value: object) -> str:
    """The URL of a provider's API."""
    try:
        return address(value)
    except ValueError:
        raise ValueError("expected the URL of an API, such as https://llm.example.com") from None


def days(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_DAYS:
        raise ValueError(f"expected a number of days from 1 to {_MOST_DAYS}")
    return value


def assignments(text: str) -> dict[str, str]:
    """`NAME=VALUE,…` as in variables of OpenTelemetry, not decoded yet. No message repeats any of it."""
    found = {}
    for pair in text.split(","):
        name, equals, value = pair.partition("=")
        if not pair.strip():
            continue
        if not equals or not name.strip() or not pair.strip().isprintable():
            raise ValueError("expected NAME=VALUE, several with commas between them")
        found[name.strip()] = value.strip()
    return found


def attributes(value: object) -> str:
    """Text that `assignments` takes."""
    text = path(value)
    assignments(text)
    return text


def headers(value: object) -> Secret:
    from acp_proxy.config.channels import Secret  # few send anything

    return Secret(attributes(value))


def signals(value: object) -> tuple[str, ...]:
    """Of OpenTelemetry: a list, or one."""
    wanted = value if isinstance(value, list) else [value]
    check = one_of("metrics", "traces", "logs")
    return tuple(dict.fromkeys(str(check(each)) for each in wanted))


def secret(value: object) -> str:
    """The text that signs, or after `whsec_` its bytes in base64. No message repeats it."""
    import base64
    import binascii

    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= _LONGEST_NAME:
        raise ValueError(f"expected 1 to {_LONGEST_NAME} printable characters")
    if value.startswith("whsec_"):
        try:
            base64.b64decode(value.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            raise ValueError("expected base64 after whsec_") from None
    return value


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _quoted(number: float, check: Check) -> str:
    """`: write "1.2"`, or nothing where that would not do: a minus, nan, inf, 1e-07."""
    try:
        check(str(number))
    except ValueError:
        return ""
    return f': write "{number}"'


def suggestion(value: str, choices: Iterable[str]) -> str:
    """`; did you mean "…"?`, or nothing."""
    close = closest(value.lower(), choices)
    return f'; did you mean "{close}"?' if close else ""


def closest(value: str, choices: Iterable[str]) -> str:
    """The choice that looks like `value`, empty when none does."""
    import difflib  # only an error pays for it

    return next(iter(difflib.get_close_matches(value, list(choices), 1)), "")


def kind_of(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a table"}
    return names.get(type(value), "a date")


def listed(names: Iterable[str], joint: str = "or") -> str:
    *most, last = names
    return f"{', '.join(most)} {joint} {last}" if most else last
