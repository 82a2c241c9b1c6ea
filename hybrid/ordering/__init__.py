"""Variable orders searched for: scored on a small instance of a model, before the model itself is built."""

from hybrid.ordering.search import search_order

__all__ = ["search_order"]
