"""The one place where the image changes: `apply(image, index, command) -> (image, result)`.

Pure and deterministic: integers, bytes, text and ordered containers only; no clock, chance, float,
locale, regex or set order (RULES A1). A command that no longer fits the image is refused with
Kafka's error code in the result; nothing raises. One file per family of commands.
"""

from .dispatch import apply, apply_in_steps

__all__ = ["apply", "apply_in_steps"]
