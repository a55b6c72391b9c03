"""Puts the code of a mutant into a module that is imported already, so that nothing is imported anew for it."""

from __future__ import annotations

import ast
import ctypes
import sys
from functools import cached_property
from types import CodeType, FunctionType, ModuleType
from typing import Any

_NEW_LOCALS = 0x0002  # a flag of the code of functions; that of classes has it not


def patch(module: ModuleType, scope: str, line: int, tree: ast.Module) -> bool:
    """Put in what differs in `scope`, at or about `line`. Whether that can be done."""
    if scope and (function := _function(module, scope)) is not None:
        code = _find(compile(tree, str(module.__file__), "exec"), scope.split("."))
        if code is None or code.co_freevars != function.__code__.co_freevars:
            return False
        function.__code__ = code
        return _patch_defaults(function, scope, tree)
    return _patch_names(module, scope, line, tree)


def forget() -> None:
    """Empty what the package's functions have kept of earlier calls: the code is another one now."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("acp_proxy"):
            for kept in list(vars(module).values()):
                if callable(clear := getattr(kept, "cache_clear", None)):
                    clear()


def _function(module: ModuleType, scope: str) -> FunctionType | None:
    found: object = module
    for name in scope.split("."):
        if isinstance(found, FunctionType):
            return found  # what is inside of a function is part of its code
        found = vars(found).get(name)
        match found:
            case property(fget=function):
                found = function
            case cached_property(func=function) | classmethod(__func__=function) | staticmethod(__func__=function):
                found = function
        if callable(getattr(found, "cache_clear", None)):
            found = getattr(found, "__wrapped__", None)
    return found if isinstance(found, FunctionType) else None


def _find(code: CodeType, names: list[str]) -> CodeType | None:
    for name in names:
        inner = next((each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name), None)
        if inner is None:
            return None
        code = inner
        if code.co_flags & _NEW_LOCALS:
            return code
    return code


def _patch_defaults(function: FunctionType, scope: str, tree: ast.Module) -> bool:
    """Those of a function that are constants: others are made of what stands at the place of its definition."""
    body: list[ast.stmt] = tree.body
    found: ast.stmt | None = None
    for name in scope.split("."):
        found = next((n for n in body if isinstance(n, ast.ClassDef | ast.FunctionDef) and n.name == name), None)
        if not isinstance(found, ast.ClassDef):
            break
        body = found.body
    if not isinstance(found, ast.FunctionDef):
        return True
    arguments = found.args
    if function.__defaults__ and len(arguments.defaults) == len(function.__defaults__):
        pairs = zip(arguments.defaults, function.__defaults__, strict=True)
        function.__defaults__ = tuple(new.value if isinstance(new, ast.Constant) else old for new, old in pairs)
    for argument, new in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if isinstance(new, ast.Constant) and function.__kwdefaults__:
            function.__kwdefaults__[argument.arg] = new.value
    return True


def _patch_names(module: ModuleType, scope: str, line: int, tree: ast.Module) -> bool:
    """A constant of the module, or of a class: also where others have imported it."""
    owner = vars(module).get(scope) if scope else module
    body: list[ast.stmt] = tree.body
    if scope:
        found = [node.body for node in body if isinstance(node, ast.ClassDef) and node.name == scope]
        body = found[0] if found else []
    statement = next((node for node in body if node.lineno <= line <= (node.end_lineno or 0)), None)
    if statement is None:
        return False
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            pass
        case _:
            return False
    if value is None or owner is None or not hasattr(owner, name):
        return False
    changed = eval(compile(ast.Expression(value), "mutant", "eval"), dict(vars(module)))  # noqa: S307 - of this tree
    if hasattr(owner, "__struct_fields__"):
        return _patch_field(owner, name, changed)
    _put(module, owner, name, changed)
    if owner is module:
        _put_derived(module, name, body[body.index(statement) + 1 :])
    return True


def _put(module: ModuleType, owner: object, name: str, changed: object) -> None:
    before = getattr(owner, name)
    setattr(owner, name, changed)
    for other in list(sys.modules.values()) if owner is module else ():
        if getattr(other, "__name__", "").startswith("acp_proxy") and vars(other).get(name) is before:
            setattr(other, name, changed)


def _put_derived(module: ModuleType, name: str, later: list[ast.stmt]) -> None:
    """Constants of the module that are made of a changed one."""
    changed = {name}
    for statement in later:
        match statement:
            case ast.Assign(targets=[ast.Name(id=derived)], value=value):
                if changed & {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}:
                    made = eval(compile(ast.Expression(value), "mutant", "eval"), dict(vars(module)))  # noqa: S307
                    _put(module, module, derived, made)
                    changed.add(derived)


def _patch_field(struct: object, name: str, default: object) -> bool:
    """The default of a field of a Struct, which has no way to change it: where its tuple keeps it."""
    fields, defaults = struct.__struct_fields__, struct.__struct_defaults__  # type: ignore[attr-defined]
    place = fields.index(name) - (len(fields) - len(defaults))
    if place < 0 or not isinstance(default, bool | int | str | tuple):
        return False
    item: Any = ctypes.py_object.from_address(
        id(defaults) + tuple.__basicsize__ + place * ctypes.sizeof(ctypes.c_void_p)
    )
    item.value = default
    return bool(defaults[place] is default)
