"""Dialects of CSV: the signs around values, the texts that are null, columns without a header."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omnigraph.config.yaml_reader import FieldKind, FieldSpec, Findings, Section, SectionSchema
from omnigraph.lang.quoting import sanitize_text

COMMA: Final = ","
QUOTE: Final = '"'
# What people write for a tab where YAML keeps the backslash.
_TAB: Final = "\\t"
_LINE_ENDS: Final = "\r\n"

CSV_SECTION: Final = SectionSchema(
    "csv",
    "How the CSV files of a source are written, if not with commas and a header.",
    (
        FieldSpec("delimiter", FieldKind.TEXT, "What separates values.", False, COMMA),
        FieldSpec(
            "quote", FieldKind.TEXT, "What quotes values; twice in one, it is one.", False, QUOTE
        ),
        FieldSpec("nulls", FieldKind.TEXTS, "Texts that are null, quoted or not.", False, ()),
        FieldSpec("names", FieldKind.TEXTS, "The columns of files that have no header.", False, ()),
    ),
)


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """How files are written; `names` are the columns of files without a header."""

    delimiter: str = COMMA
    quote: str = QUOTE
    nulls: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def header(self) -> bytes | None:
        """What stands for the header of a file that has none."""
        if not self.names:
            return None
        return ",".join(f'"{name.replace(QUOTE, QUOTE * 2)}"' for name in self.names).encode()


STANDARD_CSV: Final = CsvDialect()


def read_csv_dialect(section: Section, findings: Findings) -> CsvDialect:
    """The dialect that a section describes."""
    delimiter, quote = section.get_text("delimiter"), section.get_text("quote")
    delimiter = "\t" if delimiter == _TAB else delimiter
    for name, sign in (("delimiter", delimiter), ("quote", quote)):
        if len(sign) != 1 or not sign.isascii() or sign.isalnum() or sign in _LINE_ENDS:
            message = f"csv: '{name}' is one sign of ASCII, not '{sanitize_text(sign)}'"
            hint = "read files with others by 'kind: spark'"
            findings.add_problem(section.position_of(name), message, hint=hint)
    if delimiter == quote:
        findings.add_problem(section.position, "csv: 'delimiter' and 'quote' are the same")
    names = tuple(section.values["names"] or ())
    if not all(names) or len({name.lower() for name in names}) < len(names):
        message = "csv: every one of 'names' is there once, and none is empty"
        findings.add_problem(section.position_of("names"), message)
    return CsvDialect(delimiter, quote, tuple(section.values["nulls"] or ()), names)
