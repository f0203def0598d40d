"""From arguments to a command's settings: flags, their help, and files of settings.

Flags follow from the fields of a command's dataclass. `--help` shows those that most
people need, `--help-all` all of them; `--config` reads them from a TOML file, and
`--print-config` writes them as one.
"""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType, UnionType
from typing import Annotated, Any, Union, get_type_hints

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructTypeInfo,
)

from horizon_rl.support.bounds import OutOfBoundsError, check_bounds
from horizon_rl.support.errors import InputError, blame, unknown
from horizon_rl.support.reading import read_text
from horizon_rl.support.records import FieldError, decode_value, inside
from horizon_rl.support.toml_text import to_toml, toml_tables

MORE = "  --help-all      show all flags\n"
FILES = """\
  --config FILE   take flags from a TOML file; those on the command line win
  --print-config  print all settings as such a file, and run nothing
"""


def parse(name: str, module: ModuleType, kind: type, args: Sequence[str]) -> Any:
    """Return the command's settings; None where they were only to be printed.

    Args:
        name: Of the command.
        module: Where its flags are. It may have `default`, which takes arguments and
            returns what the flags are without any, and `ADVANCED`, the fields that only
            `--help-all` shows, with all that lie deeper.
        kind: The dataclass.
        args: What follows the command's name.
    """
    # Flags of a command within a command are not in a file.
    takes_files = not any(field.name == "part" for field in fields(kind))
    own = ArgumentParser(add_help=False, allow_abbrev=False)
    own.add_argument("--help-all", action="store_true")
    if takes_files:
        own.add_argument("--config", type=Path)
        own.add_argument("--print-config", action="store_true")
    own.set_defaults(config=None, print_config=False)
    chosen, rest = own.parse_known_args(args)
    hidden = getattr(module, "ADVANCED", None)
    helps = chosen.help_all or bool({"-h", "--help"} & set(rest))
    shown = None if chosen.help_all or not helps else hidden
    default = _default(module, kind, chosen.config, rest)
    try:
        cmd = tyro.cli(
            kind,
            prog=f"horizon {name}",
            args=[*rest, *["--help"] * chosen.help_all],
            default=default,
            config=(tyro.conf.AvoidSubcommands, tyro.conf.DisallowNone),
            registry=_registry(kind, shown),
        )
        check_bounds(cmd)
    except SystemExit as stop:
        if helps and stop.code == 0:
            print(MORE * (hidden is not None) + FILES * takes_files, end="")
        raise
    except OutOfBoundsError as error:
        raise InputError(f"{_flag_of(error.path, rest)} {error.problem}") from error
    if chosen.print_config:
        print(to_toml(_flatten(cmd)), end="")
        return None
    return cmd


def _flag_of(path: Sequence[str], args: Sequence[str]) -> str:
    """Name the flag behind a setting: settings do not know what they are part of."""
    key = path[-1].replace("_", "-")
    flags = {arg.partition("=")[0] for arg in args if arg.startswith("--")}
    found = {f for f in flags if f.replace("_", "-").split(".")[-1].lstrip("-") == key}
    return " or ".join(sorted(found)) or f"--{key}"


# Files.


def _default(
    module: ModuleType, kind: Any, file: Path | None, args: Sequence[str]
) -> Any:
    """Return what flags are where they are left out: the file's, else the usual."""
    usual = getattr(module, "default", None)
    if file is None:
        return usual(args) if usual else None
    with blame(f"--config {file}"):
        text = read_text(file)
    with toml_tables(text, str(file)) as tables:
        return read_settings(module, kind, tables, args)


def read_settings(
    module: ModuleType, kind: Any, tables: Mapping[str, Any], args: Sequence[str] = ()
) -> Any:
    """Return a command's settings where a file gives some of them, as plain data."""
    given, usual = _plain_keys(tables), getattr(module, "default", None)
    # What other defaults depend on; 0 and "" stand for no such flag.
    words = {k: v for k, v in given.items() if v and not isinstance(v, dict | list)}
    # In one word: a value like -inf alone would be taken for a flag.
    said = [f"--{k}={v}" for k, v in words.items()]
    return _overlay(kind, usual([*said, *args]) if usual else None, given)


def _overlay(kind: Any, usual: Any, given: Mapping[str, Any]) -> Any:
    """Return the settings `usual`, or those of `kind`, with what a file gives."""
    inner = _inner(kind)
    known = [f.name for k in (kind, *inner.values()) for f in fields(k)]
    for key in given:
        if key not in known or key in inner:
            accepted = (name for name in known if name not in inner)
            raise FieldError(unknown("setting", key, accepted), (key,))
    values = {}
    for field in fields(kind):
        old = getattr(usual, field.name, MISSING)
        if old is MISSING:
            old = field.default if field.default is not MISSING else tyro.MISSING
            if field.default_factory is not MISSING:
                old = field.default_factory()
        if field.name in inner:
            own = {f.name for f in fields(inner[field.name])}
            old = _merge(old, {k: v for k, v in given.items() if k in own})
        elif field.name in given:
            hint = _hints(kind)[field.name]
            try:
                old = decode_value(hint, given[field.name])
            except FieldError as error:
                raise FieldError(error.problem, (field.name, *error.path)) from error
        values[field.name] = old
    return kind(**values)


def _merge(settings: Any, given: Mapping[str, Any]) -> Any:
    """Return a dataclass with some of its values, or of those within, replaced."""
    hints, values = _hints(type(settings)), {}
    for key, value in given.items():
        if key not in hints:
            raise FieldError(unknown("field", key, hints), (key,))
        old = getattr(settings, key)
        with inside(key):
            if is_dataclass(old) and isinstance(value, Mapping):
                values[key] = _merge(old, value)
            else:
                values[key] = decode_value(hints[key], value)
    return replace(settings, **values)


def _flatten(cmd: Any) -> dict[str, Any]:
    """Return the settings as a file has them: without the name of what has no prefix."""
    plain, inner = asdict(cmd), _inner(type(cmd))
    top = {key: value for key, value in plain.items() if key not in inner}
    for key in inner:
        top |= plain[key]
    return top


def _plain_keys(data: Any) -> Any:
    """Spell keys as fields: `num-envs` is `num_envs`."""
    if not isinstance(data, Mapping):
        return data
    return {key.replace("-", "_"): _plain_keys(value) for key, value in data.items()}


@cache
def _inner(kind: Any) -> dict[str, Any]:
    """Return the fields whose own fields are flags without a prefix, and their types."""
    return {
        name: hint.__origin__
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if any(
            getattr(x, "name", None) == "" for x in getattr(hint, "__metadata__", ())
        )
    }


_hints = cache(get_type_hints)

# Help.


def _registry(kind: Any, hidden: Sequence[str] | None) -> ConstructorRegistry:
    """Say how dataclasses become flags; `hidden` ones do not, nor what lies deeper."""
    registry, top = ConstructorRegistry(), {kind, *_inner(kind).values()}

    asked = set()

    @registry.struct_rule
    def rule(info: StructTypeInfo) -> StructConstructorSpec | None:
        # Asked again by itself, it leaves the answer to tyro.
        if not is_dataclass(info.type) or info.type in asked:
            return None
        asked.add(info.type)
        spec = registry.get_struct_spec(info)
        asked.remove(info.type)
        if not isinstance(spec, StructConstructorSpec):
            return None
        specs = []
        for field in spec.fields:
            typ, value, text = field.type, field.default, field.helptext
            if hidden is not None and (info.type not in top or field.name in hidden):
                typ = Annotated[typ, tyro.conf.Suppress]
            if value is False:
                # `--no-x` says nothing where x is off anyway.
                typ = Annotated[typ, tyro.conf.FlagCreatePairsOff]
            if value is None or value == () or value == "":
                # The text says what happens without it.
                typ = Annotated[typ, tyro.conf.arg(help_behavior_hint="")]
            text = text() if callable(text) else text
            text = text and " ".join(text.split())
            specs.append(replace(field, type=typ, helptext=text))
        return replace(spec, fields=tuple(specs))

    _speak_plainly(registry)
    return registry


def _speak_plainly(registry: ConstructorRegistry) -> None:
    """Say what values are accepted without Python's names of their types.

    Tyro would list them as `tuple[typing.Annotated[float, Within(...)], ...]`.
    """
    asked = set()

    @registry.primitive_rule
    def rule(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
        # Asked again by itself, it leaves the answer to tyro.
        if info.type_origin not in (Union, UnionType, tuple) or info.type in asked:
            return None
        asked.add(info.type)
        spec = registry.get_primitive_spec(info)
        asked.remove(info.type)
        if not isinstance(spec, PrimitiveConstructorSpec):
            return None

        def read(words: list[str]) -> Any:
            try:
                return spec.instance_from_str(words)
            except ValueError:
                accepted, found = spec.metavar.strip("{}"), " ".join(words)
                raise ValueError(f"accepted: {accepted}; found: {found}") from None

        return replace(spec, instance_from_str=read)
