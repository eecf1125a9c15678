"""From a declaration to straight-line Python: one decoder and one encoder per message and version.

A generic walk over the declaration would cost a dozen calls and lookups per field. Instead, the
first use of a message in a version writes the source of a function that does exactly what that
version needs, and executes it. What the source looks like, for a struct of two numbers and a
string in a flexible version:

    o1 = new(MemberIdentity)
    o1.epoch, o1.rank, n2, = u_iiB(b, p)            # a run of fixed sizes and the length's first
    p += 9                                          # byte are one unpack
    if n2 > 127: n2, p = uvarint(b, p - 1)
    if not n2: raise DecodeError(...)               # null where the version has no null
    q = p + n2 - 1
    if q > end: raise DecodeError(...)
    o1.name = b[p:q].decode()
    p = q

Each has a second form, a generator that pauses after so many items of arrays, for messages that
would hold the event loop (RULES F1).

Safety of decoding rests on four checks: `unpack_from` and indexing raise at the end of the buffer;
every slice is compared with `end` first, because slicing is silent; an array's count times the
smallest size of its element must fit into what is left *before* anything is allocated; varints
have a largest size. All of them surface as `DecodeError`.

`python -m logboat.wire FetchRequest 13` prints it for a reader.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any
from uuid import UUID

from .exceptions import DecodeError, EncodeError, WireError
from .schema import (
    ZERO_UUID,
    Decoder,
    DecoderInSteps,
    Encoder,
    EncoderInSteps,
    Field,
    Message,
    Struct,
    Versions,
)
from .varint import decode_unsigned, encode_unsigned

FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""Kinds of one size, with their `struct` format."""

ITEMS_AT_ONCE = 500
"""Items of arrays between two pauses of the generators: about a millisecond."""

MAX_STRING = 32767
"""Bytes of a string; flexible versions could say more but must not (Kafka refuses it, too)."""


def compile_decoder(message: type[Message], version: int) -> Decoder:
    """
    Raises:
        DecodeError: the message has no such version.
    """
    decoder: Decoder = _decoder_source(message, version, in_steps=False).function()
    return decoder


def compile_decoder_in_steps(message: type[Message], version: int) -> DecoderInSteps:
    """As `compile_decoder`."""
    decoder: DecoderInSteps = _decoder_source(message, version, in_steps=True).function()
    return decoder


def compile_encoder(message: type[Message], version: int) -> Encoder:
    """
    Raises:
        EncodeError: the message has no such version.
    """
    encoder: Encoder = _encoder_source(message, version, in_steps=False).function()
    return encoder


def compile_encoder_in_steps(message: type[Message], version: int) -> EncoderInSteps:
    """As `compile_encoder`."""
    encoder: EncoderInSteps = _encoder_source(message, version, in_steps=True).function()
    return encoder


def _decoder_source(message: type[Message], version: int, *, in_steps: bool) -> _DecoderSource:
    if version not in message.__versions__:
        raise DecodeError(f"{message.__name__} has no version {version}")
    return _DecoderSource(message, version, in_steps=in_steps)


def _encoder_source(message: type[Message], version: int, *, in_steps: bool) -> _EncoderSource:
    if version not in message.__versions__:
        raise EncodeError(f"{message.__name__} has no version {version}")
    return _EncoderSource(message, version, in_steps=in_steps)


def source_of(message: type[Message], version: int) -> str:
    """The generated decoder and encoder, to be looked at."""
    decoder, encoder = _DecoderSource(message, version), _EncoderSource(message, version)
    decoder.function()
    encoder.function()
    return f"{decoder.text()}\n\n{encoder.text()}"


def compile_constructor(struct_class: type[Struct]) -> None:
    """Gives the class an `__init__` with one keyword per field."""
    names: dict[str, Any] = {"unset": object()}
    parameters, body = [], []
    for field in struct_class.__fields__:
        default = _default(field, names)
        if not default.endswith(("[]", "()")):
            parameters.append(f"{field.name}={default}")
            body.append(f"self.{field.name} = {field.name}")
        else:  # a fresh list or struct for each instance
            parameters.append(f"{field.name}=unset")
            body.append(f"self.{field.name} = {default} if {field.name} is unset else {field.name}")
    head = f"def __init__(self{', *, ' if parameters else ''}{', '.join(parameters)}):"
    exec("\n    ".join([head, *(body or ["pass"])]), names)
    names["__init__"].__qualname__ = f"{struct_class.__qualname__}.__init__"
    struct_class.__init__ = names["__init__"]  # type: ignore[method-assign]


class _Source:
    """Lines of one generated function and the objects that they name."""

    error: type[WireError]

    def __init__(self, message: type[Message], version: int, *, in_steps: bool = False) -> None:
        self.message = message
        self.version = version
        self.in_steps = in_steps
        self.flexible = version in message.__flexible__
        self.what = f"{message.__name__} v{version}"
        self.names: dict[str, Any] = {self.error.__name__: self.error}
        self._lines: list[str] = []
        self._count = 0

    def line(self, indent: int, text: str) -> None:
        self._lines.append("    " * indent + text)

    def fail_if(self, indent: int, condition: str, field: Field, why: str) -> None:
        message = f"{self.what}: {field.name} {why}"
        self.line(indent, f"if {condition}: raise {self.error.__name__}({message!r})")

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def packer(self, method: str, format_: str) -> str:
        """The name of `unpack_from` or `pack` for a big-endian format."""
        name = f"{method[0]}_{format_.replace('?', 'Z')}"
        self.names[name] = getattr(_struct_of(format_), method)
        return name

    def class_name(self, struct_class: type[Struct]) -> str:
        name = struct_class.__qualname__.replace(".", "_")
        self.names[name] = struct_class
        return name

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def build(self, name: str) -> Any:
        source = self.text()
        filename = f"<{self.message.__name__} v{self.version} {name}>"
        exec(compile(source, filename, "exec"), self.names)
        return self.names[name]

    def begin_steps(self) -> None:
        if self.in_steps:
            self.line(1, f"left = {ITEMS_AT_ONCE}")
            self.line(1, "if not left: yield")  # a generator also where no array is

    def item_done(self, indent: int) -> None:
        """At the end of the loop over an array."""
        if self.in_steps:
            self.line(indent, "left -= 1")
            self.line(indent, "if not left:")
            self.line(indent + 1, f"left = {ITEMS_AT_ONCE}")
            self.line(indent + 1, "yield")

    def compact(self, field: Field) -> bool:
        return self.flexible and not field.classic


class _DecoderSource(_Source):
    """Writes `decode(b, p) -> (message, position)`."""

    error = DecodeError

    def __init__(self, message: type[Message], version: int, *, in_steps: bool = False) -> None:
        super().__init__(message, version, in_steps=in_steps)
        self.names |= {
            "new": object.__new__,
            "uvarint": decode_unsigned,
            "uuid": _uuid_from_bytes,
            "ZERO_UUID": ZERO_UUID,
            "unpack_from": struct.unpack_from,
            "past_end": (IndexError, struct.error),
        }
        # Fixed sizes waiting to be read by one unpack: (format, target), and what to do after it.
        self._run: list[tuple[str, str]] = []
        self._after_run: list[str] = []
        # Records must not be copied, so their message is read through a view; any other is read
        # from `bytes`, whose slices decode faster.
        self._through_view = message.__in_place__ or _holds_records(message, version)

    def function(self) -> Any:
        root = self.fresh("o")
        self.line(0, "def decode(b, p):")
        self.begin_steps()
        if self._through_view:
            self.line(1, "b = memoryview(b)")
        else:
            self.line(1, "if type(b) is not bytes: b = bytes(b)")
        self.line(1, "end = len(b)")
        self.line(1, "try:")
        self._struct(2, self.message, root)
        self.line(2, f"return {root}, p")
        self.line(1, "except past_end:")
        self.line(2, f"raise DecodeError('{self.what} is truncated at byte %d' % end) from None")
        self.line(1, "except UnicodeDecodeError as error:")
        self.line(2, f"raise DecodeError('{self.what}: %s' % error) from None")
        return self.build("decode")

    # Runs of fixed sizes

    def _read_fixed(self, field: Field, target: str) -> None:
        if field.kind == "uuid":
            raw = self.fresh("u")
            self._run.append(("16s", raw))
            self._after_run.append(f"{target} = uuid({raw})")
        else:
            self._run.append((FIXED[field.kind], target))

    def _flush(self, indent: int) -> None:
        if not self._run:
            return
        format_ = "".join(code for code, _ in self._run)
        targets = ", ".join(target for _, target in self._run)
        if format_ == "B":
            self.line(indent, f"{targets} = b[p]")
        else:
            self.line(indent, f"{targets}, = {self.packer('unpack_from', format_)}(b, p)")
        self.line(indent, f"p += {_struct_of(format_).size}")
        for statement in self._after_run:
            self.line(indent, statement)
        self._run.clear()
        self._after_run.clear()

    def _read_count(self, indent: int, field: Field, classic_format: str) -> tuple[str, str, str]:
        """Reads a length. Gives the variable, its number as an expression, and "it is null"."""
        count = self.fresh("n")
        if self.compact(field):
            self._run.append(("B", count))
            self._flush(indent)
            self.line(indent, f"if {count} > 127:")
            self.line(indent + 1, f"{count}, p = uvarint(b, p - 1)")
            if field.kind == "string":
                self.fail_if(indent + 1, f"{count} > {MAX_STRING + 1}", field, "is too long")
            return count, f"{count} - 1", f"not {count}"
        self._run.append((classic_format, count))
        self._flush(indent)
        return count, count, f"{count} < 0"

    # Fields

    def _struct(self, indent: int, struct_class: type[Struct], target: str) -> None:
        self.line(indent, f"{target} = new({self.class_name(struct_class)})")
        tagged = []
        for field in struct_class.__fields__:
            attribute = f"{target}.{field.name}"
            if not field.carried_in(self.version):
                self.line(indent, f"{attribute} = {_default(field, self.names)}")
            elif self.version in field.tagged:
                self.line(indent, f"{attribute} = {_default(field, self.names)}")
                tagged.append(field)
            elif field.kind in FIXED:
                self._read_fixed(field, attribute)
            else:
                self._value(indent, field, attribute)
        if self.flexible:
            self._tagged_fields(indent, tagged, target)
        else:
            self._flush(indent)

    def _value(self, indent: int, field: Field, target: str) -> None:
        """One value of any kind, read completely."""
        if field.kind in FIXED:
            self._read_fixed(field, target)
            self._flush(indent)
        elif field.kind == "string":
            self._string(indent, field, target)
        elif field.kind in ("bytes", "records"):
            self._bytes(indent, field, target)
        elif field.kind == "array":
            self._array(indent, field, target)
        elif self.version in field.nullable:
            present = self.fresh("n")
            self._run.append(("b", present))
            self._flush(indent)
            self.line(indent, f"if {present} < 0: {target} = None")
            self.line(indent, "else:")
            self._nested(indent + 1, field, target)
        else:
            self._flush(indent)
            self._nested(indent, field, target)

    def _nested(self, indent: int, field: Field, target: str) -> None:
        assert field.struct is not None
        value = self.fresh("o")
        self._struct(indent, field.struct, value)
        self.line(indent, f"{target} = {value}")

    def _null(self, indent: int, field: Field, null: str, target: str) -> int:
        """Deals with null; what follows goes to the returned indent."""
        if self.version in field.nullable:
            self.line(indent, f"if {null}: {target} = None")
            self.line(indent, "else:")
            return indent + 1
        self.fail_if(indent, null, field, "must not be null")
        return indent

    def _string(self, indent: int, field: Field, target: str) -> None:
        _, number, null = self._read_count(indent, field, "h")
        indent = self._null(indent, field, null, target)
        self.line(indent, f"q = p + {number}")
        self.fail_if(indent, "q > end", field, "runs past the end")
        copy = ".tobytes()" if self._through_view else ""
        self.line(indent, f"{target} = b[p:q]{copy}.decode()")
        self.line(indent, "p = q")

    def _bytes(self, indent: int, field: Field, target: str) -> None:
        _, number, null = self._read_count(indent, field, "i")
        indent = self._null(indent, field, null, target)
        self.line(indent, f"q = p + {number}")
        self.fail_if(indent, "q > end", field, "runs past the end")
        copy = ".tobytes()" if self._through_view and field.kind == "bytes" else ""
        self.line(indent, f"{target} = b[p:q]{copy}")
        self.line(indent, "p = q")

    def _array(self, indent: int, field: Field, target: str) -> None:
        element = field.element
        assert element is not None
        count, number, null = self._read_count(indent, field, "i")
        indent = self._null(indent, field, null, target)
        smallest = _smallest_size(element, self.version, self.flexible)
        bound = f"({number}) * {smallest}" if smallest > 1 else number
        self.fail_if(indent, f"{bound} > end - p", field, "counts more than there is")
        if element.kind in FIXED and element.kind != "uuid":
            code = FIXED[element.kind]
            unpackers = f"unpack_{code.replace('?', 'Z')}"
            self.names[unpackers] = [
                _struct_of(f"{length}{code}").unpack_from for length in range(_SHORT)
            ]
            shift = 1 if self.compact(field) else 0
            self.line(
                indent,
                f"{target} = [*({unpackers}[{number}](b, p) if {count} < {_SHORT + shift} "
                f"else unpack_from('>%d{code}' % ({number}), b, p))]",
            )
            self.line(indent, f"p += ({number}) * {_struct_of(code).size}")
            return
        items, item = self.fresh("a"), self.fresh("o")
        self.line(indent, f"{target} = {items} = []")
        self.line(indent, f"for _ in range({number}):")
        if element.struct is not None:
            self._struct(indent + 1, element.struct, item)
        else:
            self._value(indent + 1, element, item)
        self.line(indent + 1, f"{items}.append({item})")
        self.item_done(indent + 1)

    def _tagged_fields(self, indent: int, tagged: list[Field], target: str) -> None:
        count, tag, after = self.fresh("n"), self.fresh("t"), self.fresh("q")
        self._run.append(("B", count))
        self._flush(indent)
        self.line(indent, f"if {count}:")
        indent += 1
        self.line(indent, f"if {count} > 127: {count}, p = uvarint(b, p - 1)")
        self.line(indent, f"for _ in range({count}):")
        indent += 1
        self.line(indent, f"{tag}, p = uvarint(b, p)")
        self.line(indent, f"{after}, p = uvarint(b, p)")
        self.line(indent, f"{after} += p")
        self.line(
            indent,
            f"if {after} > end: "
            f"raise DecodeError('{self.what}: tagged field %d runs past the end' % {tag})",
        )
        for field in tagged:
            self.line(indent, f"if {tag} == {field.tag}:")
            self._value(indent + 1, field, f"{target}.{field.name}")
            self.fail_if(indent + 1, f"p != {after}", field, "does not fill its tag")
        self.line(indent, f"p = {after}")


class _EncoderSource(_Source):
    """Writes `encode(o, w) -> buffers`, where `w` is the bytearray to begin with."""

    error = EncodeError

    def __init__(self, message: type[Message], version: int, *, in_steps: bool = False) -> None:
        super().__init__(message, version, in_steps=in_steps)
        self.names |= {
            "uvarint": encode_unsigned,
            "total": _total_size,
            "explain": partial(_explain, version=version),
            "wrong_value": _WRONG_VALUE,
        }
        # Fixed sizes waiting to be written by one pack: (format, expression); "x" is a zero byte.
        self._run: list[tuple[str, str]] = []
        self._has_records = _holds_records(message, version)

    def function(self) -> Any:
        self.line(0, "def encode(o, w):")
        self.begin_steps()
        if self._has_records:
            self.line(1, "parts = []")
        self.line(1, "try:")
        self._struct(2, self.message, "o")
        self._flush(2)
        if self._has_records:
            self.line(2, "if w or not parts: parts.append(w)")
            self.line(2, "return parts")
        else:
            self.line(2, "return [w]")
        # Values are not checked beforehand; whatever a wrong one raises is explained afterwards.
        self.line(1, "except EncodeError: raise")
        self.line(1, "except wrong_value as error:")
        self.line(2, f"raise EncodeError('{self.what}: ' + explain(o, error)) from error")
        return self.build("encode")

    # Runs of fixed sizes

    def _write_fixed(self, kind: str, value: str) -> None:
        expression = f"{value}.int.to_bytes(16, 'big')" if kind == "uuid" else value
        self._run.append((FIXED[kind], expression))

    def _packed_run(self, *more: tuple[str, str]) -> str:
        """An expression for the bytes of the run (which stays) and what follows it."""
        run = [*self._run, *more]
        format_ = "".join(code for code, _ in run)
        values = ", ".join(value for code, value in run if code != "x")
        if set(format_) == {"x"}:
            return repr(bytes(len(format_)))
        return f"{self.packer('pack', format_)}({values})"

    def _flush(self, indent: int) -> None:
        if self._run:
            self.line(indent, f"w += {self._packed_run()}")
            self._run.clear()

    def _write_count(self, indent: int, field: Field, count: str, classic_format: str) -> None:
        """Writes a length that is held in `count`, in the field's own counting (compact: + 1)."""
        if not self.compact(field):
            self._run.append((classic_format, count))
            self._flush(indent)
            return
        if self._run:
            self.line(indent, f"if {count} < 128: w += {self._packed_run(('B', count))}")
        else:
            self.line(indent, f"if {count} < 128: w.append({count})")
        self.line(indent, "else:")
        if field.kind == "string":
            self.fail_if(indent + 1, f"{count} > {MAX_STRING + 1}", field, "is too long")
        if self._run:
            self.line(indent + 1, f"w += {self._packed_run()}")
            self._run.clear()
        self.line(indent + 1, f"w += uvarint({count})")

    # Fields

    def _struct(self, indent: int, struct_class: type[Struct], source: str) -> None:
        tagged = []
        for field in struct_class.__fields__:
            attribute = f"{source}.{field.name}"
            if not field.carried_in(self.version):
                if not field.ignorable:
                    is_set = self._is_set(indent, field, attribute)
                    self.fail_if(indent, is_set, field, "is set but not carried")
            elif self.version in field.tagged:
                tagged.append(field)
            else:
                self._value(indent, field, attribute)
        if not self.flexible:
            return
        if tagged:
            self._tagged_fields(indent, tagged, source)
        else:
            self._run.append(("x", ""))

    def _value(self, indent: int, field: Field, value: str) -> None:
        if field.kind in FIXED:
            self._write_fixed(field.kind, value)
        elif field.kind == "string":
            self._string(indent, field, value)
        elif field.kind in ("bytes", "records"):
            self._bytes(indent, field, value)
        elif field.kind == "array":
            self._array(indent, field, value)
        else:
            self._nested(indent, field, value)

    def _nested(self, indent: int, field: Field, value: str) -> None:
        assert field.struct is not None
        item = self.fresh("o")
        self.line(indent, f"{item} = {value}")
        if self.version in field.nullable:
            self._flush(indent)
            self.line(indent, f"if {item} is None: w += b'\\xff'")
            self.line(indent, "else:")
            indent += 1
            self._run.append(("b", "1"))
            self._struct(indent, field.struct, item)
            self._flush(indent)
        else:
            self._struct(indent, field.struct, item)

    def _length(self, indent: int, field: Field, value: str, length: str) -> str:
        """Computes the length to write (null included) into a variable."""
        count = self.fresh("n")
        compact = self.compact(field)
        present = f"{length} + 1" if compact else length
        if self.version in field.nullable:
            null = 0 if compact else -1
            self.line(indent, f"{count} = {null} if {value} is None else {present}")
        else:
            self.line(indent, f"{count} = {present}")
        return count

    def _string(self, indent: int, field: Field, value: str) -> None:
        text = self.fresh("s")
        count = self.fresh("n")
        plus = " + 1" if self.compact(field) else ""
        if self.version in field.nullable:
            self.line(indent, f"{text} = {value}")
            self.line(indent, f"if {text} is None: {count} = {0 if plus else -1}; {text} = b''")
            self.line(indent, f"else: {text} = {text}.encode(); {count} = len({text}){plus}")
        else:
            self.line(indent, f"{text} = {value}.encode()")
            self.line(indent, f"{count} = len({text}){plus}")
        self._write_count(indent, field, count, "h")
        self.line(indent, f"w += {text}")

    def _bytes(self, indent: int, field: Field, value: str) -> None:
        data = self.fresh("d")
        self.line(indent, f"{data} = {value}")
        length = f"len({data})"
        if field.kind == "records":
            length = f"(total({data}) if type({data}) is list else len({data}))"
        count = self._length(indent, field, data, length)
        self._write_count(indent, field, count, "i")
        if field.kind == "bytes":
            self.line(indent, f"if {data}: w += {data}")
            return
        self.line(indent, f"if {data}:")
        self.line(indent + 1, "parts.append(w)")
        self.line(indent + 1, f"if type({data}) is list: parts.extend({data})")
        self.line(indent + 1, f"else: parts.append({data})")
        self.line(indent + 1, "w = bytearray()")

    def _array(self, indent: int, field: Field, value: str) -> None:
        element = field.element
        assert element is not None
        items, item = self.fresh("a"), self.fresh("o")
        self.line(indent, f"{items} = {value}")
        if element.kind in FIXED and element.kind != "uuid":
            self._numbers(indent, field, element, items)
            return
        count = self._length(indent, field, items, f"len({items})")
        self._write_count(indent, field, count, "i")
        if self.version in field.nullable:
            self.line(indent, f"if {items}:")
            indent += 1
        self.line(indent, f"for {item} in {items}:")
        if element.struct is not None:
            self._struct(indent + 1, element.struct, item)
        else:
            self._value(indent + 1, element, item)
        self._flush(indent + 1)
        self.item_done(indent + 1)

    def _numbers(self, indent: int, field: Field, element: Field, items: str) -> None:
        code = FIXED[element.kind]
        packers = f"pack_{code.replace('?', 'Z')}"
        self.names[packers] = _ArrayPackers(code)
        count = self._length(indent, field, items, f"len({items})")
        compact = self.compact(field)
        # Replicas come in threes or alone: then the run, the count and the numbers are one pack.
        for size in (3, 1):
            counted = size + 1 if compact else size
            numbers = [f"x{number}" for number in range(size)]
            self.line(indent, f"{'if' if size == 3 else 'elif'} {count} == {counted}:")
            self.line(indent + 1, f"{', '.join(numbers)}, = {items}")
            packed = self._packed_run(
                ("B" if compact else "i", str(counted)), *((code, number) for number in numbers)
            )
            self.line(indent + 1, f"w += {packed}")
        self.line(indent, "else:")
        self._write_count(indent + 1, field, count, "i")
        self.line(indent + 1, f"if {items}: w += {packers}[len({items})](*{items})")

    def _tagged_fields(self, indent: int, tagged: list[Field], source: str) -> None:
        self._flush(indent)
        count, outer, pairs = self.fresh("n"), self.fresh("w"), self.fresh("t")
        self.line(indent, f"{count} = 0")
        for field in sorted(tagged, key=lambda field: field.tag or 0):
            attribute = f"{source}.{field.name}"
            is_set = self._is_set(indent, field, attribute)
            self.line(indent, f"if {is_set}:")
            self.line(indent + 1, f"if not {count}: {pairs} = bytearray()")
            self.line(indent + 1, f"{count} += 1")
            self.line(indent + 1, f"{outer} = w")
            self.line(indent + 1, "w = bytearray()")
            self._value(indent + 1, field, attribute)
            self._flush(indent + 1)
            self.line(
                indent + 1, f"{pairs} += {encode_unsigned(field.tag or 0)!r} + uvarint(len(w)) + w"
            )
            self.line(indent + 1, f"w = {outer}")
        self.line(indent, f"if {count}: w += uvarint({count}) + {pairs}")
        self.line(indent, "else: w += b'\\0'")

    def _is_set(self, indent: int, field: Field, attribute: str) -> str:
        """A condition: the value differs from the default, so it has something to say."""
        if field.kind == "struct":
            assert field.struct is not None
            if field.nullable != _NEVER:
                return f"{attribute} is not None"
            defaults = field.struct
            item = self.fresh("o")
            self.line(indent, f"{item} = {attribute}")
            parts = [
                self._is_set(indent, inner, f"{item}.{inner.name}") for inner in defaults.__fields__
            ]
            return f"{item} is not None and ({' or '.join(parts)})"
        if field.default is None:
            return f"{attribute} is not None"
        if field.kind == "array":
            return f"({attribute} is None or {attribute})"
        if field.kind == "uuid":
            return f"{attribute}.int"
        if field.kind == "bool":
            return f"not {attribute}" if field.default else attribute
        return f"{attribute} != {field.default!r}"


_WRONG_VALUE = (struct.error, AttributeError, TypeError, ValueError, OverflowError)
"""What a value of the wrong type or size makes the generated code raise."""
_NEVER = Versions.parse("none")
_SHORT = 64
"""Arrays of numbers shorter than this have a ready-made format."""


def _default(field: Field, names: dict[str, Any]) -> str:
    """An expression for the field's default; a list or struct is a fresh one."""
    if field.kind == "uuid":
        names["ZERO_UUID"] = ZERO_UUID
        return "ZERO_UUID"
    if field.kind == "struct":
        if field.tag is not None or field.nullable != _NEVER:
            return "None"
        assert field.struct is not None
        name = field.struct.__qualname__.replace(".", "_")
        names[name] = field.struct
        return f"{name}()"
    return repr(field.default)


def _smallest_size(field: Field, version: int, flexible: bool) -> int:
    """The fewest bytes that an array element can take."""
    if field.kind in FIXED:
        return _struct_of(FIXED[field.kind]).size
    if field.struct is not None:
        if version in field.nullable:
            return 1
        carried = (
            inner
            for inner in field.struct.__fields__
            if inner.carried_in(version) and version not in inner.tagged
        )
        return sum(_smallest_size(inner, version, flexible) for inner in carried) + flexible
    if flexible and not field.classic:
        return 1
    return 2 if field.kind == "string" else 4


def _holds_records(struct_class: type[Struct], version: int) -> bool:
    for field in struct_class.__fields__:
        if field.carried_in(version):
            inner = field.element if field.element is not None else field
            if inner.kind == "records":
                return True
            if inner.struct is not None and _holds_records(inner.struct, version):
                return True
    return False


class _ArrayPackers(dict[int, Callable[..., bytes]]):
    """`pack` for an array of so many numbers; the small ones are kept when first used."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, count: int) -> Callable[..., bytes]:
        pack = struct.Struct(f">{count}{self._code}").pack
        if count < _SHORT:
            self[count] = pack
        return pack


def _explain(message: Message, error: Exception, *, version: int) -> str:
    """What was wrong with a message that could not be encoded."""
    null = _find_null(message, version)
    return f"{null} must not be null" if null is not None else str(error)


def _find_null(value: Struct, version: int) -> str | None:
    for field in type(value).__fields__:
        if not field.carried_in(version):
            continue
        inner = getattr(value, field.name)
        if inner is None:
            if version not in field.nullable and version not in field.tagged:
                return field.name
            continue
        for item in inner if isinstance(inner, list) else [inner]:
            if isinstance(item, Struct) and (found := _find_null(item, version)) is not None:
                return f"{field.name}.{found}"
    return None


def _total_size(records: Any) -> int:
    return sum(map(len, records)) if type(records) is list else len(records)


@lru_cache(maxsize=4096)
def _uuid_from_bytes(raw: bytes) -> UUID:
    # A memo of a pure function: the same few topic ids come with every fetch, and building a UUID
    # costs a microsecond.
    return UUID(bytes=raw)


@cache
def _struct_of(format_: str) -> struct.Struct:
    return struct.Struct(">" + format_)
