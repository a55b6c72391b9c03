"""Which small changes a module's code may have, one at a time, as syntax trees."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COUNTED: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_NO_CODE = ("annotation", "returns", "decorator_list", "bases")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed module. `scope` is the function or class that the change is in, "" for the module itself."""

    line: int
    scope: str
    what: str
    tree: ast.Module


def mutants(source: str) -> Iterator[Mutant]:
    tree = ast.parse(source)
    for number, (node, scope) in enumerate(_places(tree)):
        for what, change in _changes(node):
            changed = copy.deepcopy(tree)
            change(next(found for place, (found, _) in enumerate(_places(changed)) if place == number))
            yield Mutant(node.lineno, scope, what, ast.fix_missing_locations(changed))


Place = tuple[ast.expr | ast.stmt, str]


def _places(node: ast.AST, scope: str = "") -> Iterator[Place]:
    """All that may change, in a fixed order, with where it is."""
    for name, value in ast.iter_fields(node):
        if name in _NO_CODE:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_for_readers(child):
                continue
            inner = scope
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{scope}.{child.name}".lstrip(".")
            elif isinstance(child, ast.expr | ast.stmt):
                yield child, scope
            yield from _places(child, inner)


def _is_for_readers(node: ast.AST) -> bool:
    """Texts, what only type checkers read, and names of slots."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assign(targets=[ast.Name(id="__slots__")]):
            return True
        case ast.AnnAssign(value=None):
            return True
    return False


def _changes(node: ast.expr | ast.stmt) -> Iterator[tuple[str, Callable[[Any], None]]]:
    text = ast.unparse(node).partition("\n")[0]
    match node:
        case ast.Compare(ops=ops):
            for place, op in enumerate(ops):
                if (other := _COMPARED.get(type(op))) is not None:
                    yield f"{text}: {type(op).__name__} -> {other.__name__}", _set_op(place, other)
        case ast.BoolOp(op=op):
            swapped: type[ast.boolop] = ast.Or if isinstance(op, ast.And) else ast.And
            yield f"{text}: {type(op).__name__} -> {swapped.__name__}", _set("op", swapped)
        case ast.BinOp(op=operator) if (replaced := _COUNTED.get(type(operator))) is not None:
            yield f"{text}: {type(operator).__name__} -> {replaced.__name__}", _set("op", replaced)
        case ast.UnaryOp(op=ast.Not()):
            yield f"{text}: not dropped", _drop_not
        case ast.Constant(value=bool(value)):
            yield f"{text} -> {not value}", _set("value", lambda: not value)
        case ast.Constant(value=int() | float() as number):
            yield f"{text} -> {number + 1}", _set("value", lambda: number + 1)
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr():
            yield f"{text}: dropped", _drop


def _set(name: str, make: Callable[[], object]) -> Callable[[ast.AST], None]:
    return lambda node: setattr(node, name, make())


def _set_op(place: int, op: type[ast.cmpop]) -> Callable[[Any], None]:
    def change(node: ast.Compare) -> None:
        node.ops[place] = op()

    return change


def _drop_not(node: ast.UnaryOp) -> None:
    """`not x` becomes what is true where x is."""
    node.operand = ast.UnaryOp(ast.Not(), node.operand)


def _drop(node: ast.AST) -> None:
    """A statement becomes one that does nothing."""
    node.__class__ = ast.Expr
    node.__dict__["value"] = ast.Constant(None)
