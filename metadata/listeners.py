"""Names under which a broker registers its addresses (BrokerRegistration, Listeners)."""

from __future__ import annotations

CLIENT_LISTENER = "PLAINTEXT"
"""Where clients are sent: the advertised listener."""

INTERNODE_LISTENER = "INTERNODE"
"""Where other nodes connect (RULES B5)."""

HTTP_LISTENER = "HTTP"
"""The HTTP API; may be missing."""
