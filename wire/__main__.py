"""Shows the code that a declaration is compiled to: `python -m logboat.wire FetchRequest 13`."""

from __future__ import annotations

import sys

from .api_keys import all_apis
from .compiler import source_of


def main(arguments: list[str]) -> int:
    messages = {
        message.__name__: message
        for known in all_apis()
        for message in (known.request, known.response)
    }
    if len(arguments) != 2 or arguments[0] not in messages or not arguments[1].isdigit():
        print("usage: python -m logboat.wire <message> <version>", file=sys.stderr)
        return 2
    print(source_of(messages[arguments[0]], int(arguments[1])), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
