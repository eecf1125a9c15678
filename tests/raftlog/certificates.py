"""Certificates made on the spot, by authorities that live as long as a test run."""

from __future__ import annotations

from pathlib import Path

import trustme

from logboat.raftlog import ChannelTls


class Authority:
    """Signs the certificates of nodes. Its files lie in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority = trustme.CA()
        self.file = folder / "authorities.pem"
        self._authority.cert_pem.write_to_path(self.file)

    def file_of(self, *names: str) -> Path:
        """Private key and chain of a certificate for these DNS names."""
        path = self._folder / f"{'+'.join(names)}.pem"
        if not path.exists():
            self._authority.issue_cert(*names).private_key_and_cert_chain_pem.write_to_path(path)
        return path

    def tls(self, *names: str, believes: Authority | None = None) -> ChannelTls:
        return ChannelTls.of_files(
            certificate=str(self.file_of(*names)), authorities=str((believes or self).file)
        )
