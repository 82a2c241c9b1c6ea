"""The case studies of the thesis ([Tealdi13] chapter 5): models, sizes, and the figures that it prints."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MEMORY", "ORDER", "STUDIES", "THESIS", "Study"]


@dataclass(frozen=True)
class Study:
    """A case study of the thesis.

    Attributes
    ----------
    figure : str
        Number of its table.
    model, prop : str
        Example model and name of a property in its properties file.
    sizes : tuple of int
        Sizes of the thesis.
    method : str
        Method of the project.
    constants : dict
        Further constants.
    """

    figure: str
    model: str
    prop: str
    sizes: tuple[int, ...]
    method: str
    constants: dict[str, int]


STUDIES = {
    "fms": Study("5.4", "fms", "productivity", (6, 7, 8, 9, 10), "jor", {}),
    "kanban": Study("5.5", "kanban", "throughput", (4, 5, 6, 7, 8), "jor", {}),
    "polling-before": Study("5.6", "polling", "s1_before_s2", (15, 16, 17, 18, 19, 20), "jacobi", {}),
    "polling-s1": Study("5.7", "polling", "s1", (15, 16, 17, 18, 19, 20), "jor", {}),
    "cluster": Study("5.8", "cluster", "premium_steady", (128, 256, 512), "jor", {}),
    "tandem": Study("5.9", "tandem", "customers", (511, 1023, 2047, 4095), "jor", {}),
    "brp": Study("5.10", "brp", "p1", (512, 1024, 2048, 4096), "jacobi", {"MAX": 50}),
}

THESIS = {
    "fms": {6: (31.9, 3.79, 0.87), 7: (205.1, 13.9, 11.49), 8: (969.1, 47.01, 36.77),
            9: (2541.22, 141.66, 98.55), 10: (8818.31, 370.9, 247.3)},
    "kanban": {4: (6.18, 1.34, 0.65), 5: (61.1, 13.15, 6.49), 6: (395.18, 83.49, 40.87),
               7: (1976.26, 434.93, 190.87), 8: (8649.98, 1862.29, 822.24)},
    "polling-before": {15: (72.77, 7.94, 6.03), 16: (176.84, 25.96, 12.66), 17: (400.54, 57.21, 28.94),
                       18: (914.12, 149.92, 61.35), 19: (2043.92, 329.58, 137.75),
                       20: (4590.52, 807.42, 303.57)},
    "polling-s1": {15: (16.7, 4.6, 1.84), 16: (41.14, 12.41, 4.09), 17: (98.6, 28.8, 9.4),
                   18: (245.03, 74.44, 21.76), 19: (556.7, 170.46, 50.34), 20: (1310.45, 449.52, 118.6)},
    "cluster": {128: (19.19, 0.86, 0.43), 256: (238.28, 43.14, 19.75), 512: (9697.12, 1157.67, 646.89)},
    "tandem": {511: (106.5, 7.67, 7.5), 1023: (788.25, 52.04, 34.46), 2047: (4393.5, 308.55, 218.4),
               4095: (29527, 1967, 1338.6)},
    "brp": {512: (18.7, 1.53, 1.34), 1024: (76.58, 5.38, 4.49), 2048: (327.1, 19.4, 15.8),
            4096: (1277.1, 79.7, 60.1)},
}  # fmt: skip
"""Seconds of the thesis: its CPU, its GPU at the level of minimum memory, and at that of minimum time."""

MEMORY = {
    "fms": {6: (17.6, 2.6, 3.8), 7: (45.2, 6.1, 8.6), 8: (114.6, 13.1, 24.2), 9: (271.2, 26.6, 75.5),
            10: (604.7, 51.4, 163)},
    "kanban": {4: (11.3, 0.6, 1.3), 5: (59.5, 2.4, 4.6), 6: (259.1, 10.1, 16.1), 7: (954.3, 31.1, 60.1),
               8: (3000, 97.6, 177.1)},
    "polling-before": {15: (23.9, 1, 2.2), 16: (49.1, 1.8, 4.9), 17: (103.3, 2.6, 11), 18: (217.5, 5.6, 24.4),
                       19: (457.7, 8.77, 54), 20: (961.9, 19.3, 119)},
    "polling-s1": {15: (17.7, 0.69, 4.17), 16: (36.7, 1.54, 9.43), 17: (77.3, 2.5, 21.19),
                   18: (162.8, 5.5, 47.3), 19: (342.8, 10.25, 105.19), 20: (720.8, 21.93, 232.51)},
    "cluster": {128: (15.3, 1.5, 2.4), 256: (57.3, 4.7, 8.5), 512: (221.6, 13.1, 32.4)},
    "tandem": {511: (12.7, 0.22, 0.22), 1023: (48.7, 0.73, 0.73), 2047: (192.6, 2.6, 3.8),
               4095: (768.5, 9.7, 15.8)},
    "brp": {512: (11.1, 0.2, 0.35), 1024: (21.3, 0.3, 0.68), 2048: (42.5, 0.53, 1.35),
            4096: (81.1, 0.93, 2.68)},
}  # fmt: skip
"""Megabytes of the thesis: MemB, and MemR at the levels of minimum memory and of minimum time."""

ORDER = ("brp", "cluster", "fms", "polling-before", "polling-s1", "tandem", "kanban")
"""Studies from the cheapest to the dearest at their largest sizes."""
