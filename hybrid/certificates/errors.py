"""What can be wrong with a certificate."""

from __future__ import annotations

__all__ = ["CertificateError", "NotCertifiableError"]


class CertificateError(ValueError):
    """A certificate that does not show what it claims: damaged, of another model, or a broken inequality."""


class NotCertifiableError(ValueError):
    """A property or model for which there is no certificate."""
