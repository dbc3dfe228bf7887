"""Whether a text is a cron schedule, in the words that a CronJob's refusal has.

Enters: the text of `spec.schedule`. Leaves: the complaint, or "". Must not compute times.
"""

from __future__ import annotations

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_DAYS = "sun mon tue wed thu fri sat"
_BOUNDS = ((0, 59, ""), (0, 23, ""), (1, 31, ""), (1, 12, _MONTHS), (0, 6, _DAYS))
_DESCRIPTORS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})


def complaint(schedule: str) -> str:
    """What is wrong with a schedule; empty when nothing is."""
    if schedule.startswith("@"):
        known = schedule in _DESCRIPTORS or schedule.startswith("@every ")
        return "" if known else f"unrecognized descriptor: {schedule}"
    fields = schedule.split()
    if len(fields) != 5:
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    for field, bounds in zip(fields, _BOUNDS, strict=True):
        for part in field.split(","):
            if found := _part(part, *bounds):
                return found
    return ""


def _part(part: str, low: int, high: int, words: str) -> str:
    span, slash, step = part.partition("/")
    if slash and not step.isdecimal():
        return _no_number(step)
    if slash and int(step) == 0:
        return f"step of range should be a positive number: {part}"
    if span in ("*", "?"):
        return ""
    ends = span.split("-")
    if len(ends) > 2:
        return f"too many hyphens: {part}"
    named = {word: number + low for number, word in enumerate(words.split())}
    numbers = [named.get(end.lower(), int(end) if end.isdecimal() else None) for end in ends]
    for end, number in zip(ends, numbers, strict=True):
        if number is None:
            return _no_number(end)
    start = numbers[0] or 0
    stop = (numbers[1] or 0) if len(numbers) == 2 else high if slash else start
    return _range(part, start, stop, low, high)


def _no_number(text: str) -> str:
    return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'


def _range(part: str, start: int, stop: int, low: int, high: int) -> str:
    if start < low:
        return f"beginning of range ({start}) below minimum ({low}): {part}"
    if stop > high:
        return f"end of range ({stop}) above maximum ({high}): {part}"
    return f"beginning of range ({start}) beyond end of range ({stop}): {part}" if start > stop else ""
