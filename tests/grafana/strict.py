"""Dashboards against Grafana's own types: a misspelled key is an error, a missing one is Grafana's default."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator
from jsonschema.exceptions import ValidationError, best_match

SCHEMAS = Path(__file__).parent / "schema"

# Written by the SDK on each variable, read by Grafana for other kinds of variables only.
_OF_OTHER_VARIABLES = ("auto", "auto_count", "auto_min")


def complaints(dashboard: dict[str, Any]) -> list[str]:
    whole = deepcopy(dashboard)
    panels = whole.pop("panels")
    for variable in whole["templating"]["list"]:
        for name in _OF_OTHER_VARIABLES:
            variable.pop(name, None)
    found = list(_against("dashboard", "Dashboard", whole, "dashboard"))
    for panel in panels:
        found += _of_panel(panel)
    return found


def _of_panel(panel: dict[str, Any]) -> Iterator[str]:
    where = f"panel {panel.get('title')!r}"
    if panel["type"] == "row":
        yield from _against("dashboard", "RowPanel", panel, where)
        return
    yield from _against("dashboard", "Panel", panel, where)
    yield from _against(f"{panel['type']}.Options", "Options", panel["options"], f"{where}, options")
    custom = panel["fieldConfig"]["defaults"].get("custom", {})
    yield from _against(f"{panel['type']}.FieldConfig", "FieldConfig", custom, f"{where}, custom")


def _against(file: str, definition: str, value: object, where: str) -> Iterator[str]:
    schema = json.loads((SCHEMAS / f"{file}.json").read_text(encoding="utf-8"))
    validator = Draft7Validator(_optional({**schema, "$ref": f"#/definitions/{definition}"}))
    for error in validator.iter_errors(value):
        yield f"{where}: {_told(error)}"


def _optional(schema: Any) -> Any:
    """The schema without `required`: Grafana fills in what is not there."""
    match schema:
        case dict():
            return {
                key: _optional(value)
                for key, value in schema.items()
                if not (key == "required" and isinstance(value, list))
            }
        case list():
            return [_optional(value) for value in schema]
    return schema


def _told(error: ValidationError) -> str:
    deepest = best_match([error]) or error
    return f"{'/'.join(map(str, deepest.absolute_path))}: {deepest.message[:200]}"
