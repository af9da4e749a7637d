"""What is measured, a module per task.

A task has `cells(options)`, the cases in the order in which they are run; `methods(adapter, cell)`, the
functions that an adapter has for a case; `measure(function, cell)`, run in the process of the library;
`group(cell)`: after one case of a group took too long, later ones are skipped; `tables(rows)` and, if it
has a picture, `plot(runs, path)`.
"""

# The names in an adapter that a task looks at: an adapter with none of them takes no part.
NEEDS = {
    "recovery": ("RECOVERY",),
    "patches": ("PATCHES",),
    "denoising": ("DENOISING", "PICTURES"),
    "coding": ("CODING",),
    "scaling": ("SCALING", "UPDATES"),
    "cold_start": ("PATCHES",),
}
NAMES = tuple(NEEDS)
