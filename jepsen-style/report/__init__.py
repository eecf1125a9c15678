"""One HTML file a run: what failed first, then who did what when. No network is needed."""

from .page import write_report

__all__ = ["write_report"]
