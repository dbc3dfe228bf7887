"""YAML bodies: the safe loader without timestamps, noting repeated keys. Imported only when a client sends YAML."""

from __future__ import annotations

from typing import Any

import yaml

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    repeated: dict[int, list[str]]

    def construct_pairs_noted(self, node: yaml.MappingNode) -> Any:
        made: dict[Any, Any] = {}
        yield made
        self.flatten_mapping(node)
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            name = key if isinstance(key, str) else str(key).lower() if isinstance(key, bool) else str(key)
            if name in made:
                self.repeated.setdefault(id(made), []).append(name)
            made[name] = self.construct_object(value_node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_pairs_noted)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}


def parse(body: bytes, repeated: dict[int, list[str]]) -> Any:
    """The value of a YAML document; `repeated` gets the keys that a mapping (by id) repeats.

    Raises:
        yaml.YAMLError: no YAML.
    """
    loader = _Loader(body)
    loader.repeated = repeated
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
