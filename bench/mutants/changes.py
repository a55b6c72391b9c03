"""Which small changes a module's code may have, one at a time, as syntax trees.

Left out is what no test can notice, or every test does: texts, annotations, imports, `__repr__`, how a class is made,
and constants and fields that are not there at all.
"""

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
_COUNTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}
_NO_CODE = {"annotation", "returns", "decorator_list", "bases"}
_SAME = (ast.Compare, ast.BoolOp, ast.Constant)  # conditions that are changed by themselves

Change = tuple[str, Callable[[Any], None]]


@dataclass(frozen=True, slots=True)
class Place:
    """What may change: its node, the function or class that it is in, "" for the module, and lines that run with it."""

    node: ast.AST
    scope: str
    lines: tuple[int, ...]
    is_local: bool  # in a function


@dataclass(frozen=True, slots=True)
class Mutant:
    """The `number`th change of those at the `place`th place of its module."""

    scope: str
    lines: tuple[int, ...]
    what: str
    place: int
    number: int

    def made(self, tree: ast.Module) -> ast.Module:
        changed = copy.deepcopy(tree)
        found = next(each for place, each in enumerate(_places(changed)) if place == self.place)
        list(_changes(found))[self.number][1](found.node)
        return ast.fix_missing_locations(changed)


def mutants(tree: ast.Module) -> Iterator[Mutant]:
    for place, found in enumerate(_places(tree)):
        for number, (what, _) in enumerate(_changes(found)):
            yield Mutant(found.scope, found.lines, what, place, number)


def _places(node: ast.AST, scope: str = "", statement: int = 0) -> Iterator[Place]:
    """All that may change, in a fixed order."""
    for name, value in ast.iter_fields(node):
        if name in _NO_CODE or (name == "keywords" and isinstance(node, ast.ClassDef)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_for_readers(child):
                continue
            inner, line = scope, child.lineno if isinstance(child, ast.stmt) else statement
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner, line = f"{scope}.{child.name}".lstrip("."), child.body[-1].lineno
            elif isinstance(child, ast.expr | ast.stmt | ast.comprehension):
                own = child.lineno if isinstance(child, ast.expr | ast.stmt) else line
                yield Place(child, scope, (own, line), not isinstance(node, ast.ClassDef | ast.Module))
            yield from _places(child, inner, line)


def _is_for_readers(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assign(targets=[ast.Name(id="__slots__")]):
            return True
        case ast.AnnAssign(value=None) | ast.Call(func=ast.Name(id="TypeVar")) | ast.FunctionDef(name="__repr__"):
            return True
        case ast.keyword(arg="strict"):
            return True  # of `zip`: a check that never fails
    return False


def _changes(place: Place) -> Iterator[Change]:
    node = place.node
    text = ast.unparse(node).partition("\n")[0].strip()
    match node:
        case ast.Compare(ops=ops):
            for number, op in enumerate(ops):
                if (other := _COMPARED.get(type(op))) is not None:
                    which = f" ({number + 1})" if len(ops) > 1 else ""
                    yield f"{text}: {type(op).__name__} -> {other.__name__}{which}", _set_op(number, other)
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
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if not _is_changed_itself(test):
            yield f"{text}: turned round", _set("test", lambda: ast.UnaryOp(ast.Not(), test))
        case ast.comprehension(ifs=[condition]) if not _is_changed_itself(condition):
            yield f"{text}: turned round", _set("ifs", lambda: [ast.UnaryOp(ast.Not(), condition)])
        case ast.Return(value=ast.expr() as value) if not _is_empty(value):
            yield f"{text}: nothing returned", _set("value", lambda: _nothing(text))
        case ast.Assign() | ast.AugAssign() | ast.Expr() | ast.AnnAssign() if place.is_local:
            yield f"{text}: dropped", _drop


def _is_changed_itself(condition: ast.expr) -> bool:
    return isinstance(condition, _SAME) or (isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not))


def _is_empty(value: ast.expr) -> bool:
    """What most who ask take for None as well; a constant is changed by itself."""
    return isinstance(value, ast.Constant) or ast.unparse(value) in ("[]", "()", "{}")


def _set(name: str, make: Callable[[], object]) -> Callable[[Any], None]:
    return lambda node: setattr(node, name, make())


def _set_op(place: int, op: type[ast.cmpop]) -> Callable[[Any], None]:
    def change(node: ast.Compare) -> None:
        node.ops[place] = op()

    return change


def _drop_not(node: ast.UnaryOp) -> None:
    """`not x` becomes what is true where x is."""
    node.operand = ast.UnaryOp(ast.Not(), node.operand)


def _drop(node: Any) -> None:
    """A statement becomes one that does nothing."""
    value = _nothing(ast.unparse(node))
    node.__class__ = ast.Expr
    node.__dict__["value"] = value


def _nothing(instead: str) -> ast.expr:
    """None, in a function that has the cell of its class as before."""
    nothing = ast.Constant(None)
    return ast.BoolOp(ast.And(), [ast.Name("super", ast.Load()), nothing]) if "super()" in instead else nothing
