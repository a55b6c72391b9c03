"""Puts the code of a mutant into a module that is imported already, so that nothing is imported anew for it."""

from __future__ import annotations

import ast
import sys
from types import CodeType, FunctionType, ModuleType

from bench.mutants.changes import Mutant


def patch(module: ModuleType, mutant: Mutant) -> bool:
    """Whether that can be done: defaults of fields are in the class that was made of them."""
    path = str(module.__file__)
    if mutant.scope and (function := _function(module, mutant.scope)) is not None:
        code = _find(compile(mutant.tree, path, "exec"), mutant.scope.split("."))
        if code is None or code.co_freevars != function.__code__.co_freevars:
            return False
        function.__code__ = code
        return True
    return _patch_names(module, mutant)


def _function(module: ModuleType, scope: str) -> FunctionType | None:
    found: object = module
    for name in scope.split("."):
        if isinstance(found, FunctionType):
            return found  # what is inside of a function is part of its code
        found = vars(found).get(name)
        if isinstance(found, property):
            found = found.fget
        if isinstance(found, classmethod | staticmethod):
            found = found.__func__
    return found if isinstance(found, FunctionType) else None


def _find(code: CodeType, names: list[str]) -> CodeType | None:
    for name in names:
        inner = next((each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name), None)
        if inner is None:
            return None
        code = inner
        if not code.co_flags & 0x0002 or name == names[-1]:  # a class has no fast locals
            continue
        return code
    return code


def _patch_names(module: ModuleType, mutant: Mutant) -> bool:
    """A constant of the module, or of a class: also where others have imported it."""
    scope = "".join(f"{name}." for name in mutant.scope.split(".") if name)
    owner = module if not scope else vars(module).get(mutant.scope)
    body: list[ast.stmt] = mutant.tree.body
    if scope:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == mutant.scope)
    statement = next((node for node in body if node.lineno <= mutant.line <= (node.end_lineno or 0)), None)
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            pass
        case _:
            return False
    if value is None or owner is None or hasattr(owner, "__struct_fields__") or not hasattr(owner, name):
        return False
    changed = eval(compile(ast.Expression(value), "mutant", "eval"), dict(vars(module)))  # noqa: S307 - of this tree
    before = getattr(owner, name)
    setattr(owner, name, changed)
    for other in list(sys.modules.values()) if owner is module else ():
        if getattr(other, "__name__", "").startswith("acp_proxy") and vars(other).get(name) is before:
            setattr(other, name, changed)
    return True
