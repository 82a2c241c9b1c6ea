"""The GPU backend: row types as tiles, built and multiplied on the device; CuPy is imported at first use."""

__all__: list[str] = []
