"""The notation in which every Kafka message is declared once, for all its versions.

    class HeartbeatRequest(Message, versions="0-4", flexible="4+"):
        group_id: str = string()
        generation_id: int = int32()
        member_id: str = string()
        group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)

A field specifier says how a field lies on the wire; the annotation says what Python sees. The
type checker holds the two against each other: every specifier is typed as the value it carries.
All fields are keywords of the constructor and all have a default, Kafka's own.

=============  ====================================================================================
argument       meaning
=============  ====================================================================================
`versions`     versions that carry the field ("3+", "0-12", "7"); default: all of the message
`nullable`     versions in which null is allowed; default: none
`tag`          number of a tagged field; it is carried in the versions of `tagged` only
`default`      the value where a version does not carry the field, or nobody set it
`ignorable`    a set value is dropped silently by versions without the field; otherwise the
               encoder raises, because the peer would not hear what was said
=============  ====================================================================================

Differences from Kafka's own classes, both deliberate: a tagged struct that is absent is `None`
(Kafka builds an object full of defaults), and unknown tagged fields are dropped.

Instances are plain mutable slots objects that compare by value. `decode` and `encode` are compiled
by `compiler.py` for one version at its first use.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import (
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    dataclass_transform,
)
from uuid import UUID

from .buffers import Buffer, Records
from .exceptions import DecodeError

T = TypeVar("T")

ZERO_UUID = UUID(int=0)
"""Kafka's "no id"."""


class Versions(NamedTuple):
    """A closed range of versions; empty when `lowest` is above `highest`."""

    lowest: int
    highest: int

    @staticmethod
    def parse(text: str) -> Versions:
        """From Kafka's spelling: "3+", "0-12", "7" or "none"."""
        if text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return Versions(int(text[:-1]), _NO_LIMIT)
        lowest, _, highest = text.partition("-")
        return Versions(int(lowest), int(highest or lowest))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest


_NO_LIMIT = 32767
NO_VERSIONS = Versions(0, -1)
ALL_VERSIONS = Versions(0, _NO_LIMIT)


@dataclass(frozen=True, slots=True)
class Field:
    """How one field lies on the wire. Made by the specifiers below, read by the compiler."""

    kind: str
    """A primitive of Kafka's ("int16", "string", "records", ...), "array" or "struct"."""
    default: Any
    """A list stands for a fresh empty list."""
    name: str = ""
    versions: Versions = ALL_VERSIONS
    nullable: Versions = NO_VERSIONS
    tag: int | None = None
    tagged: Versions = NO_VERSIONS
    ignorable: bool = False
    element: Field | None = None
    """What an array holds."""
    struct: type[Struct] | None = None
    classic: bool = False
    """Keeps the old encoding in flexible versions too; only the client id of a header does."""

    def carried_in(self, version: int) -> bool:
        return version in self.tagged or (version in self.versions and self.tag is None)


class Where(TypedDict, total=False):
    """Arguments of every specifier; the module's docstring explains them."""

    versions: str
    nullable: str
    tagged: str
    tag: int
    ignorable: bool
    classic: bool


def int8(default: int = 0, **where: Unpack[Where]) -> int:
    return cast(int, _field("int8", default, where))


def int16(default: int = 0, **where: Unpack[Where]) -> int:
    return cast(int, _field("int16", default, where))


def uint16(default: int = 0, **where: Unpack[Where]) -> int:
    return cast(int, _field("uint16", default, where))


def int32(default: int = 0, **where: Unpack[Where]) -> int:
    return cast(int, _field("int32", default, where))


def int64(default: int = 0, **where: Unpack[Where]) -> int:
    return cast(int, _field("int64", default, where))


def float64(default: float = 0.0, **where: Unpack[Where]) -> float:
    return cast(float, _field("float64", default, where))


def boolean(default: bool = False, **where: Unpack[Where]) -> bool:
    return cast(bool, _field("bool", default, where))


def uuid(**where: Unpack[Where]) -> UUID:
    return cast(UUID, _field("uuid", ZERO_UUID, where))


def string(default: str | None = "", **where: Unpack[Where]) -> str:
    return cast(str, _field("string", default, where))


def binary(default: bytes | None = b"", **where: Unpack[Where]) -> bytes:
    return cast(bytes, _field("bytes", default, where))


def record_set(**where: Unpack[Where]) -> Records:
    return cast(Records, _field("records", None, where))


_EMPTY: list[Any] = []


def array(
    element: Callable[..., T], default: list[Any] | None = _EMPTY, **where: Unpack[Where]
) -> list[T]:
    """A list of a primitive (`array(int32)`) or of a struct (`array(TopicData)`)."""
    of = Field("struct", None, struct=cast(Any, element))
    if not isinstance(element, StructMeta):
        of = cast(Field, element())
    return cast(list[T], replace(_field("array", default, where), element=of))


def nested(struct: type[T], default: T | None = None, **where: Unpack[Where]) -> T:
    """One struct in place. Nullable or tagged: `None` unless set; otherwise a fresh default."""
    return cast(T, replace(_field("struct", default, where), struct=cast("type[Struct]", struct)))


def _field(kind: str, default: object, where: Where) -> Field:
    return Field(
        kind,
        default,
        versions=Versions.parse(where.get("versions", "0+")),
        nullable=Versions.parse(where.get("nullable", "none")),
        tagged=Versions.parse(where.get("tagged", "none")),
        tag=where.get("tag"),
        ignorable=where.get("ignorable", False),
        classic=where.get("classic", False),
    )


@dataclass_transform(kw_only_default=True)
class StructMeta(type):
    """Turns the declared fields into slots; everything else about a class stays as written."""

    __fields__: tuple[Field, ...]
    __arrays__: tuple[tuple[str, bool], ...]
    """Names of those that hold structs or strings, and whether these hold such arrays again."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **keywords: Any
    ) -> StructMeta:
        fields = tuple(
            replace(value, name=key) for key, value in namespace.items() if isinstance(value, Field)
        )
        for field in fields:
            del namespace[field.name]
        namespace["__slots__"] = tuple(field.name for field in fields)
        namespace["__fields__"] = fields
        namespace["__arrays__"] = tuple(
            (field.name, element.struct is not None and bool(element.struct.__arrays__))
            for field in fields
            if (element := field.element) is not None
            and (element.struct is not None or element.kind == "string")
        )
        return super().__new__(mcls, name, bases, namespace, **keywords)


class Struct(metaclass=StructMeta):
    """A group of fields inside a message."""

    def __init__(self, **values: Any) -> None:
        # The real constructor is compiled when the first instance is made, not at import.
        from .compiler import compile_constructor

        compile_constructor(type(self))
        type(self).__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            getattr(self, field.name) == getattr(other, field.name)
            for field in type(self).__fields__
        )

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        values = (f"{field.name}={getattr(self, field.name)!r}" for field in type(self).__fields__)
        return f"{type(self).__qualname__}({', '.join(values)})"


Decoder = Callable[[Buffer, int], tuple[Any, int]]
Encoder = Callable[[Any, bytearray], list[Buffer]]

Steps = Generator[None, None, T]
"""Pauses after so many items of arrays, which have no say in what it comes to (RULES F1)."""
DecoderInSteps = Callable[[Buffer, int], Steps[tuple[Any, int]]]
EncoderInSteps = Callable[[Any, bytearray], Steps[list[Buffer]]]


class Message(Struct):
    """A whole request, response or record."""

    __versions__: ClassVar[Versions] = NO_VERSIONS
    __flexible__: ClassVar[Versions] = NO_VERSIONS
    # Filled by the compiler; a memo of pure functions, the only state a class keeps.
    __decoders__: ClassVar[dict[int, Decoder]]
    __encoders__: ClassVar[dict[int, Encoder]]
    __decoders_in_steps__: ClassVar[dict[int, DecoderInSteps]]
    __encoders_in_steps__: ClassVar[dict[int, EncoderInSteps]]

    __in_place__: ClassVar[bool] = False
    """Read through a view of the buffer, which goes on behind it; others from `bytes`, faster."""

    def __init_subclass__(
        cls, versions: str = "none", flexible: str = "none", in_place: bool = False
    ) -> None:
        super().__init_subclass__()
        cls.__in_place__ = in_place
        cls.__versions__ = Versions.parse(versions)
        cls.__flexible__ = Versions.parse(flexible)
        cls.__decoders__ = {}
        cls.__encoders__ = {}
        cls.__decoders_in_steps__ = {}
        cls.__encoders_in_steps__ = {}

    @classmethod
    def decode(cls, buffer: Buffer, version: int) -> Self:
        """The message that fills the whole buffer.

        Raises:
            DecodeError: the bytes are not exactly one message of that version.
        """
        message, position = cls.decode_from(buffer, 0, version)
        if position != len(buffer):
            raise DecodeError(f"{cls.__name__} v{version} ends at byte {position} of {len(buffer)}")
        return message

    @classmethod
    def decode_from(cls, buffer: Buffer, position: int, version: int) -> tuple[Self, int]:
        """The message that starts at `position`, and the position behind it.

        Raises:
            DecodeError: the bytes hold no message of that version there.
        """
        decoder = cls.__decoders__.get(version)
        if decoder is None:
            decoder = _compile_decoder(cls, version)
        return decoder(buffer, position)

    def encode(self, version: int) -> list[Buffer]:
        """The message as buffers to be written one after the other; records stay their own.

        Raises:
            EncodeError: a value does not fit its field, or a field that was set is not carried
                by that version and is not ignorable.
        """
        encoder = self.__encoders__.get(version)
        if encoder is None:
            encoder = _compile_encoder(type(self), version)
        return encoder(self, bytearray())

    def encode_behind(self, prefix: bytearray, version: int) -> list[Buffer]:
        """As `encode`, with the first buffer grown from `prefix` (a header)."""
        encoder = self.__encoders__.get(version)
        if encoder is None:
            encoder = _compile_encoder(type(self), version)
        return encoder(self, prefix)

    @classmethod
    def decode_in_steps(
        cls, buffer: Buffer, position: int, version: int
    ) -> Steps[tuple[Self, int]]:
        """As `decode_from`; the buffer must stay unchanged until the end."""
        decoder = cls.__decoders_in_steps__.get(version)
        if decoder is None:
            decoder = _compile_decoder_in_steps(cls, version)
        return decoder(buffer, position)

    def encode_in_steps(self, prefix: bytearray, version: int) -> Steps[list[Buffer]]:
        """As `encode_behind`; the message must stay unchanged until the end."""
        encoder = self.__encoders_in_steps__.get(version)
        if encoder is None:
            encoder = _compile_encoder_in_steps(type(self), version)
        return encoder(self, prefix)

    def holds_more_than(self, items: int) -> bool:
        """Whether its arrays, and the arrays in them, hold more items than that."""
        return _left(self, items) < 0


def _left(value: Struct, items: int) -> int:
    """What is left of so many when those in the arrays below are taken off; or less than 0."""
    for name, has_arrays in type(value).__arrays__:
        held = getattr(value, name)
        if not held:
            continue
        items -= len(held)
        if has_arrays:
            for item in held:
                if items < 0:
                    break
                items = _left(item, items)
        if items < 0:
            break
    return items


def _compile_decoder_in_steps(message: type[Message], version: int) -> DecoderInSteps:
    from .compiler import compile_decoder_in_steps

    decoder = compile_decoder_in_steps(message, version)
    message.__decoders_in_steps__[version] = decoder
    return decoder


def _compile_encoder_in_steps(message: type[Message], version: int) -> EncoderInSteps:
    from .compiler import compile_encoder_in_steps

    encoder = compile_encoder_in_steps(message, version)
    message.__encoders_in_steps__[version] = encoder
    return encoder


def _compile_decoder(message: type[Message], version: int) -> Decoder:
    from .compiler import compile_decoder

    decoder = message.__decoders__[version] = compile_decoder(message, version)
    return decoder


def _compile_encoder(message: type[Message], version: int) -> Encoder:
    from .compiler import compile_encoder

    encoder = message.__encoders__[version] = compile_encoder(message, version)
    return encoder
