"""What an identity provider tells, kept in the hub's tables, with what follows of it for people.

Protocol, filters and uniqueness are scim2-server's: its storage in memory gets the few documents that a request is
about, and what comes of it is written.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import orjson
from msgspec.structs import replace
from scim2_models import EnterpriseUser, Group, Resource, ResourceType, ResponseParameters, SearchRequest, User
from scim2_models.path import CompareOperator, Comparison
from scim2_server.memory import InMemoryStorage
from scim2_server.storage import ScimStorage, SearchPage

from acp_proxy.hub.auth.claims import rights
from acp_proxy.hub.settings import Provider
from acp_proxy.hub.store.directory import Directory, Kind
from acp_proxy.hub.store.people import People, Person
from acp_proxy.ledger.statements import Run

ACTOR = "scim"
Model = type[Resource[Any]]
MODELS: dict[Kind, Any] = {"User": User[EnterpriseUser], "Group": Group}
_NAMES = {"User": "user_name", "Group": "display_name"}


class Storage(ScimStorage):
    """For one request, in one transaction. `rules` say what groups give."""

    def __init__(self, run: Run, organisation: str, people: People, rules: Provider | None, now: int) -> None:
        self._run = run
        self._directory = Directory(run, organisation)
        self._people = people
        self._rules = rules
        self._now = now

    def get(
        self,
        resource_type: ResourceType,
        resource_id: str,
        *,
        response_parameters: ResponseParameters[Any] | None = None,  # noqa: ARG002  the server cuts the answer
    ) -> Resource[Any]:
        return self._loaded(resource_type, resource_id, None).get(resource_type, resource_id)

    def search(
        self, resource_types: list[ResourceType], search_request: SearchRequest[Any], *, position: Any = None
    ) -> SearchPage:
        memory, name = _Memory(), _only_name(search_request)
        memory.resources = [
            found
            for each in resource_types
            for found in self._documents(_kind(each), None, name if len(resource_types) == 1 else None)
        ]
        return memory.search(resource_types, search_request, position=position)

    def create(self, resource_type: ResourceType, resource: Resource[Any]) -> Resource[Any]:
        memory = self._loaded(resource_type, None, _name(_kind(resource_type), resource))
        made = memory.create(resource_type, resource)
        self._write(_kind(resource_type), None, made)
        return made

    def update(
        self, resource_type: ResourceType, resource: Resource[Any], *, expected_version: str | None = None
    ) -> Resource[Any]:
        memory = self._loaded(resource_type, resource.id, _name(_kind(resource_type), resource))
        before = memory.get(resource_type, str(resource.id))
        made = memory.update(resource_type, resource, expected_version=expected_version)
        self._write(_kind(resource_type), before, made)
        return made

    def delete(self, resource_type: ResourceType, resource_id: str, *, expected_version: str | None = None) -> None:
        memory, kind = self._loaded(resource_type, resource_id, None), _kind(resource_type)
        before = memory.get(resource_type, resource_id)
        memory.delete(resource_type, resource_id, expected_version=expected_version)
        if isinstance(before, Group):
            touched = self._directory.put_members(resource_id, ())
            self._directory.drop(kind, resource_id)
            self._follow(touched)
        else:
            self._directory.leave_all(resource_id)
            self._directory.drop(kind, resource_id)
            self._leave(before)

    def _write(self, kind: Kind, before: Resource[Any] | None, made: Resource[Any]) -> None:
        known = str(made.id)
        self._directory.put(kind, known, _name(kind, made), orjson.dumps(made.model_dump(mode="json")).decode())
        if isinstance(made, Group):
            members = {str(each.value) for each in made.members or () if each.value}
            touched = self._directory.put_members(known, members)
            renamed = before is not None and _name(kind, before) != _name(kind, made)
            self._follow(touched | members if renamed else touched)
            return
        if before is not None and _user(before) != _user(made):
            self._leave(before)
        self._arrive(made)

    def _arrive(self, user: Any) -> None:
        """As who they are told to be."""
        name = _user(user)
        known = self._people.find_in(self._run, name) or Person(name)
        team, role, leads = rights(self._directory.groups_of(str(user.id)), self._rules) if self._rules else _NOTHING
        email = next((str(each.value) for each in user.emails or () if each.value), known.email)
        told = replace(known, active=user.active is not False, email=email, name=user.display_name or known.name)
        self._people.keep_in(self._run, replace(told, team=team, role=role, leads=leads), ACTOR, self._now)

    def _leave(self, user: Any) -> None:
        known = self._people.find_in(self._run, _user(user))
        if known is not None:
            self._people.keep_in(self._run, replace(known, active=False), ACTOR, self._now)

    def _follow(self, members: set[str]) -> None:
        """Team and role of those whose groups have changed."""
        for member in sorted(members):
            for document in self._directory.documents("User", id=member):
                self._arrive(_read("User", document))

    def _loaded(self, resource_type: ResourceType, id: str | None, name: str | None) -> _Memory:
        memory = _Memory()
        memory.resources = self._documents(_kind(resource_type), id or "", name)
        return memory

    def _documents(self, kind: Kind, id: str | None, name: str | None) -> list[Resource[Any]]:
        return [_read(kind, each) for each in self._directory.documents(kind, id=id, name=name)]


_NOTHING: tuple[None, Any, tuple[str, ...]] = (None, "developer", ())


class _Memory(InMemoryStorage):
    def next_version(self) -> str:
        return f'W/"{uuid4().hex}"'


def _read(kind: Kind, document: str) -> Any:
    return MODELS[kind].model_validate(orjson.loads(document))


def _kind(resource_type: ResourceType) -> Kind:
    return "Group" if resource_type.name == "Group" else "User"


def _name(kind: Kind, resource: Any) -> str:
    """By which it is looked for: case does not matter in the names of users."""
    found = str(getattr(resource, _NAMES[kind]) or "")
    return found.lower() if kind == "User" else found


def _user(resource: Any) -> str:
    return _name("User", resource)


def _only_name(search: SearchRequest[Any]) -> str | None:
    """The name of a user, where a filter asks for nothing else: as providers do before they make one."""
    node = None if search.filter is None else search.filter.ast
    if not isinstance(node, Comparison) or node.op != CompareOperator.eq or not isinstance(node.value, str):
        return None
    return node.value.lower() if str(node.attr_path).lower().endswith("username") else None
