"""Every key of the configuration, and what its value must be. Pure: reads no file and no environment.

`*` stands for a name that the user chooses. A check returns the value as the program uses it, or raises ValueError
with a text that begins "expected"; it never repeats a value that may be a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

Key = tuple[str, ...]
Check = Callable[[object], object]

PREFIX = "ACP_PROXY_"
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}
_LONGEST_NAME = 200  # characters; names become labels of metrics


def text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text in quotes, not {_kind(value)}")
    if not value.strip() or not value.isprintable() or len(value) > _LONGEST_NAME:
        raise ValueError(f"expected 1 to {_LONGEST_NAME} printable characters")
    return value.strip()


def flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, not {_kind(value)}")
    return value


def tokens(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"expected a number of tokens such as 200_000, not {_kind(value)}")
    if value < 1:
        raise ValueError("expected a number of tokens above 0")
    return value


def price(value: object) -> str:
    """Decimal text, as it was written: a float would already have lost what was meant."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f'expected a decimal in quotes, such as "1.20": write "{value}"')
    whole, point, fraction = value.partition(".") if isinstance(value, str) else ("", "", "")
    digits = whole + (fraction or ("" if not point else "?"))
    if not (whole and digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise ValueError('expected US dollars per million tokens as a decimal in quotes, such as "1.20"')
    return str(value)


def duration(value: object) -> float:
    """Seconds."""
    number = value.rstrip("ms") if isinstance(value, str) else ""
    unit = value[len(number) :] if isinstance(value, str) else ""
    if not (number.isascii() and number.isdigit() and int(number) > 0 and unit in _SECONDS):
        raise ValueError('expected a duration such as "250ms" or "2s"')
    return int(number) * _SECONDS[unit]


def ledger_url(value: object) -> str:
    """Only the form is checked here. The URL may hold a password, so no message repeats it."""
    url = text(value)
    scheme, _, rest = url.partition("://")
    if scheme in ("postgresql", "postgres"):
        raise ValueError("expected sqlite:///PATH: PostgreSQL ledgers are not built yet")
    if scheme != "sqlite" or not rest.startswith("/") or len(rest) < 2:
        raise ValueError("expected sqlite:///PATH")
    return url


def one_of(*choices: str) -> Check:
    def check(value: object) -> str:
        if isinstance(value, str) and value.lower() in choices:
            return value.lower()
        raise ValueError(f"expected {_listed(choices)}{suggestion(str(value), choices)}")

    return check


KEYS: Mapping[str, Check] = {
    "identity.user": text,
    "identity.team": text,
    "identity.organisation": text,
    "identity.project": text,
    "run.agent": text,
    "run.summary": flag,
    "run.estimate": flag,
    "log.file": text,
    "log.level": one_of("debug", "info", "warning", "error"),
    "ledger.url": ledger_url,
    "ledger.on_unavailable": one_of("open", "closed", "local"),
    "ledger.admission_timeout": duration,
    "pricing.cache_write": one_of("5m", "1h"),
    "prices.*.input": price,
    "prices.*.output": price,
    "prices.*.cached_read": price,
    "prices.*.cached_write": price,
    "prices.*.cached_write_1h": price,
    "prices.*.context": tokens,
    "aliases.*": text,
    "agents.*.scope": one_of("turn", "session", "last_call", "call"),
    "agents.*.input": one_of("excludes_cache", "includes_cache"),
    "share_titles": flag,
}

# Known, and refused: who writes a budget must not believe in one that nothing enforces.
NOT_BUILT: Mapping[str, str] = {
    "budget": "budgets are not built yet and would not be enforced; remove it",
    "run.budget": "budgets are not built yet and would not be enforced; remove it",
    "refusal": "budgets are not built yet, so nothing is refused; remove it",
    "notify": "notifications are not built yet and would not be sent; remove it",
}


def check_of(key: Key) -> Check | None:
    """The check of a complete key, None when there is no such key."""
    return KEYS.get(".".join(pattern_of(key)))


def pattern_of(key: Key) -> Key:
    """The key with `*` for the part that the user chose."""
    match key:
        case ("prices" | "aliases" | "agents" as table, _, *rest):
            return (table, "*", *rest)
    return key


def children(key: Key) -> list[str]:
    """What may stand in the table `key`: names, or `*` for any. Empty when it is no table."""
    start = ".".join((*pattern_of(key), "")) if key else ""
    return list(dict.fromkeys(known[len(start) :].partition(".")[0] for known in KEYS if known.startswith(start)))


def of_text(check: Check, value: str) -> object:
    """A value from the environment, in the type that the check takes."""
    if check is flag and value.lower() in _TRUE + _FALSE:
        return value.lower() in _TRUE
    if check is tokens and value.isascii() and value.isdigit():
        return int(value)
    return value


def unknown(key: Key) -> str:
    """What to say of a key that does not exist, with the one that was probably meant."""
    table, name = key[:-1], key[-1]
    around = {child: (*table, child) for child in children(table) if child != "*"}
    elsewhere = {known.rpartition(".")[2]: tuple(known.split(".")) for known in KEYS if "*" not in known}
    if meant := around.get(closest(name, around)) or elsewhere.get(name):
        return f"unknown key; did you mean {dotted(meant)}?"
    return f"unknown key; {f'[{dotted(table)}] has' if table else 'known are'} {_listed(around, 'and')}"


def suggestion(value: str, choices: Iterable[str]) -> str:
    """`; did you mean "…"?`, or nothing."""
    close = closest(value.lower(), choices)
    return f'; did you mean "{close}"?' if close else ""


def closest(value: str, choices: Iterable[str]) -> str:
    """The choice that looks like `value`, empty when none does."""
    import difflib  # only an error pays for it

    return next(iter(difflib.get_close_matches(value, list(choices), 1)), "")


def dotted(key: Key) -> str:
    """The key as TOML writes it, parts quoted where they need it; always one line."""
    return ".".join(part if _is_bare(part) else f'"{part.encode("unicode_escape").decode()}"' for part in key)


def _is_bare(part: str) -> bool:
    return part.isascii() and part.replace("-", "").replace("_", "").isalnum()


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a table"}
    return names.get(type(value), "a date")


def _listed(names: Iterable[str], joint: str = "or") -> str:
    *most, last = names
    return f"{', '.join(most)} {joint} {last}" if most else last
