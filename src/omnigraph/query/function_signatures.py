"""The functions of values: their names, the arguments they take, and what they give.

A signature is a line such as `slice(text, integer, integer=) -> text`. A name with several lines
takes the arguments of any one of them.

    kinds       number integer text texts bool date time moment duration list vector value any
    `x=`        may be left out
    `x?`        may be null without making the result null
    `name:x`    an option, which stands after the others with its name, and may be left out
    `x...`      one or more of them
    `same`      as a kind: of one type with the arguments before it; as a result: that type
    `!` after the result: it may be null although no argument is

`texts` is a list of texts, `moment` a date or a time, `vector` also a list of numbers, and `value`
anything but a list or a vector. Two lists have alike items, and the result `element` is the type of
those of the first; `first` is the type of the first argument, and `joined` that of lists together.
`nodes` and `edges` are those of a path.
Numbers are computed as I64 or as F64: the result `number` is I64 for integers and F64 for others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import Final

_NUMBERS = """
+(number, number) -> number!
-(number, number) -> number!
*(number, number) -> number!
/(number, number) -> F64!
%(integer, integer) -> I64!
minus(number) -> number!
abs(number) -> number!
sign(number) -> I64!
floor(number) -> number!
ceil(number) -> number!
round(number, integer=) -> number!
sqrt(number) -> F64!
exp(number) -> F64!
ln(number) -> F64!
log10(number) -> F64!
pow(number, number) -> F64!
div(integer, integer) -> I64!
mod(integer, integer) -> I64!
haversine(number, number, number, number) -> F64!
"""

_CHOICES = """
coalesce(any?, same?...) -> same
nullif(any, same) -> same!
if(bool?, any?, same?) -> same
case(bool?, any?, same?...) -> same
least(any?, same?...) -> same
greatest(any?, same?...) -> same
"""

_CONVERSIONS = """
int(number) -> I64!
int(text) -> I64!
int(bool) -> I64
float(number) -> F64
float(text) -> F64!
float(bool) -> F64
text(value) -> text
bool(text) -> bool!
date(text) -> date!
date(time) -> date
datetime(text) -> datetime!
datetime(date) -> datetime!
"""

_TEXTS = """
+(text, text) -> text
lower(text) -> text
upper(text) -> text
trim(text) -> text
length(text) -> I64
slice(text, integer, integer=) -> text
replace(text, text, text) -> text
split(text, text) -> texts!
join(texts, text) -> text
position(text, text) -> I64!
pad_left(text, integer, text) -> text!
ends_with(text, text) -> bool
matches(text, text) -> bool
extract(text, text, integer=) -> text!
regex_replace(text, text, text) -> text
edit_distance(text, text) -> I64
words(text) -> texts
"""

_DATES = """
+(date, integer) -> date!
-(date, integer) -> date!
-(date, date) -> I64
+(time, duration) -> datetime!
-(time, duration) -> datetime!
-(time, time) -> duration
+(duration, duration) -> duration!
-(duration, duration) -> duration!
*(duration, integer) -> duration!
*(integer, duration) -> duration!
/(duration, duration) -> F64!
minus(duration) -> duration!
days(integer) -> duration!
hours(integer) -> duration!
minutes(integer) -> duration!
seconds(integer) -> duration!
total_seconds(duration) -> F64
year(moment) -> I64
quarter(moment) -> I64
month(moment) -> I64
week(moment) -> I64
day(moment) -> I64
weekday(moment) -> I64
day_of_year(moment) -> I64
hour(time) -> I64
minute(time) -> I64
second(time) -> I64
today() -> date
trunc(moment, text) -> first
add_months(moment, integer) -> first!
epoch_ms(moment) -> I64
"""

_LISTS = """
+(list, list) -> joined
size(list) -> I64
item(list, integer) -> element!
has_any(list, list) -> bool
has_all(list, list) -> bool
slice(list, integer, integer=) -> first
sort(list) -> first
reverse(list) -> first
unique(list) -> first
range(integer, integer) -> integers!
"""

_SEARCH = """
highlight(text, text, before:text, after:text, words:integer) -> text!
"""

_VECTORS = """
l2(vector, vector) -> F64!
cosine(vector, vector) -> F64!
dot(vector, vector) -> F64!
norm(vector) -> F64!
"""

_PATHS = """
length(path) -> I64
nodes(path) -> nodes
edges(path) -> edges
"""

_PARAMETER: Final = re.compile(r"(?:(\w+):)?(\w+)(\??)(=|\.\.\.)?")
_SIGNATURE: Final = re.compile(r"(\S+?)\((.*)\) -> (\w+)(!?)")


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """What one argument may be."""

    kind: str
    # Whether null may be given without making the result null.
    is_null_taken: bool = False
    is_optional: bool = False
    is_repeated: bool = False
    # The name of an option.
    name: str = ""


@dataclass(frozen=True, slots=True)
class Signature:
    """One way to call a function."""

    name: str
    parameters: tuple[FunctionParameter, ...]
    result: str
    # Whether the result may be null although no argument is.
    can_fault: bool
    options: tuple[FunctionParameter, ...] = ()

    @property
    def least(self) -> int:
        """How many arguments there are at least."""
        return sum(not each.is_optional for each in self.parameters)

    def find_parameters(self, count: int) -> tuple[FunctionParameter, ...] | None:
        """The parameters of so many arguments; None if there cannot be so many."""
        if self.parameters and self.parameters[-1].is_repeated:
            repeated = max(count - len(self.parameters), 0)
            found = (*self.parameters, *(self.parameters[-1:] * repeated))
        else:
            found = self.parameters
        return found[:count] if self.least <= count <= len(found) else None

    def __str__(self) -> str:
        shown = []
        for each in self.parameters:
            text = f"{each.kind}, …" if each.is_repeated else each.kind
            shown.append(f"[{text}]" if each.is_optional else text)
        shown += [f"[{each.name}: {each.kind}]" for each in self.options]
        return f"{self.name}({', '.join(shown)})"


def _read_signatures(*groups: str) -> dict[str, tuple[Signature, ...]]:
    found: dict[str, tuple[Signature, ...]] = {}
    for line in "".join(groups).split("\n"):
        if parts := _SIGNATURE.fullmatch(line):
            name, parameters, result, fault = parts.groups()
            kinds = [
                # What is left out of the options is null.
                FunctionParameter(kind, bool(null or option), mark == "=", mark == "...", option)
                for option, kind, null, mark in _PARAMETER.findall(parameters)
            ]
            taken = tuple(each for each in kinds if not each.name)
            options = tuple(each for each in kinds if each.name)
            signature = Signature(name, taken, result, bool(fault), options)
            found[name] = (*found.get(name, ()), signature)
    return found


_GROUPS: Final = {
    "Numbers": _NUMBERS,
    "Choices": _CHOICES,
    "Conversions": _CONVERSIONS,
    "Texts": _TEXTS,
    "Dates and times": _DATES,
    "Lists": _LISTS,
    "Search": _SEARCH,
    "Vectors": _VECTORS,
    "Paths": _PATHS,
}
SIGNATURES: Final = _read_signatures(*_GROUPS.values())
# All ways to call the functions of a group, by the title of the group.
FUNCTION_GROUPS: Final = {
    title: tuple(chain.from_iterable(_read_signatures(group).values()))
    for title, group in _GROUPS.items()
}
# Those that are written as operators or as `case { }`.
_WRITTEN_OTHERWISE: Final = frozenset({"+", "-", "*", "/", "%", "minus", "case"})
FUNCTION_NAMES: Final = frozenset(SIGNATURES) - _WRITTEN_OTHERWISE
