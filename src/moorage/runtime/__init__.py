"""Controllers: shared reflectors, work queues, the walk, the status writer, events, leader election, metrics, health,
admission and projection. It knows no kind; rooms are given to it.

Import from the modules. `room` and `walk` are light enough for pure doors and for the command line.
"""
