"""What a part of Ingot asks of a Kubernetes API, read from its code: which verb of which kind.

Every call of a client and every informer in the code names its kind: a constant, or a parameter, and then whoever calls that
function names it. What cannot be found out so is an error, never nothing: a role that is compared with this has no gaps that
nobody looked into.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import ingot
from ingot.api.meta import Resource

SOURCE: Final = Path(ingot.__file__).parent
VERBS: Final = {
    "get": ("get",),
    "create": ("create",),
    "patch": ("patch",),
    "apply": ("patch",),
    "delete": ("delete",),
    "list": ("list",),
    "pages": ("list",),
    "latest_version": ("list",),
    "watch": ("watch",),
    "Informer": ("list", "watch"),
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Unclear(Exception):
    """The code does not tell which kind is meant; say so in the test."""


class Need(NamedTuple):
    """A verb, and what it is done to: `hostclaims.metal3.io`, or `hostclaims.metal3.io/status`."""

    verb: str
    what: str


def named(kind: Resource[Any], subresource: str = "") -> str:
    home = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    return f"{home}/{subresource}" if subresource else home


@dataclass
class Reader:
    """Reads the modules of some places below the package: folders or files. `told` names the kinds that the code cannot."""

    places: tuple[str, ...]
    told: Mapping[str, tuple[Resource[Any], ...]] = field(default_factory=dict)
    """By the expression and the module in which it stands: `cli/parts/x.py kind`."""
    kinds: set[Resource[Any]] = field(default_factory=set, init=False)
    """Those that were found."""

    def needs(self) -> set[Need]:
        self._modules = {path: ast.parse(path.read_text()) for path in self._paths()}
        return {need for path, tree in self._modules.items() for need in self._in_module(path, tree)}

    def _paths(self) -> Iterator[Path]:
        for place in self.places:
            path = SOURCE / place
            found = sorted(path.rglob("*.py")) if path.is_dir() else [path]
            assert found, place
            yield from found

    def _in_module(self, path: Path, tree: ast.Module) -> Iterator[Need]:
        for call, function in _calls(tree, None):
            verb = _verb(call, _module(path))
            if not verb:
                continue
            arguments = call.args[1:] if verb == "Informer" else call.args
            for kind in self._kinds(arguments[0], path, function):
                self.kinds.add(kind)
                for subresource in self._subresources(call):
                    yield from (Need(done, named(kind, subresource)) for done in VERBS[verb])

    def _kinds(self, said: ast.expr, path: Path, function: Function | None) -> Iterator[Resource[Any]]:
        text = ast.unparse(said)
        place = f"{path.relative_to(SOURCE)} {text}"
        if place in self.told:
            yield from self.told[place]
            return
        if isinstance(said, ast.Call) and ast.unparse(said.func) == "metadata_of":
            yield from self._kinds(said.args[0], path, function)
            return
        constant = getattr(_module(path), text, None)
        if isinstance(constant, Resource):
            yield constant
            return
        names = [argument.arg for argument in function.args.args] if function is not None else []
        if function is None or text not in names:
            raise Unclear(f"{place}: which kinds are these?")
        position = names.index(text) - (1 if names[0] == "self" else 0)
        for other, tree in self._modules.items():
            for call, around in _calls(tree, None):
                if _called(call) == function.name and len(call.args) > position:
                    yield from self._kinds(call.args[position], other, around)

    def _subresources(self, call: ast.Call) -> tuple[str, ...]:
        for keyword in call.keywords:
            if keyword.arg == "subresource":
                # One that is decided elsewhere may be any that there is.
                constant = isinstance(keyword.value, ast.Constant)
                return (str(ast.literal_eval(keyword.value)),) if constant else ("", "status")
        return ("",)


def _module(path: Path) -> ModuleType:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return importlib.import_module(".".join(part for part in parts if part != "__init__"))


def _calls(node: ast.AST, function: Function | None) -> Iterator[tuple[ast.Call, Function | None]]:
    """Every call, and the function that it stands in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child, function
        yield from _calls(child, child if isinstance(child, Function) else function)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def _verb(call: ast.Call, module: ModuleType) -> str:
    """What the call asks of the API; "" for calls that ask nothing of it."""
    name = _called(call)
    if name == "Informer" or name not in VERBS or not isinstance(call.func, ast.Attribute):
        return name if name == "Informer" else ""
    # Whatever it is called: who is asked for a kind is a client.
    of_a_kind = bool(call.args) and isinstance(getattr(module, ast.unparse(call.args[0]), None), Resource)
    return name if of_a_kind or ast.unparse(call.func.value).endswith("client") else ""
