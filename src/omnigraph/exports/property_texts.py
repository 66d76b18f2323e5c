"""Values of properties as the texts of CSV and XML; a load reads them back."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.json_encoding import TEXT, encode_json_texts, is_text


def format_property_texts(values: pa.Array) -> pa.Array:
    """Texts as they are, lists and vectors as JSON, other values as JSON spells them."""
    kind = values.type
    if is_text(kind):
        return values.cast(TEXT)
    texts = encode_json_texts(values)
    is_nested = pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)
    # Quotes of JSON: no text of these types has one inside.
    return texts if is_nested else pc.replace_substring(texts, '"', "")
